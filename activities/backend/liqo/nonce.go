package liqo

import (
	"context"
	"crypto"
	"crypto/x509"
	"fmt"

	"github.com/liqotech/liqo/pkg/consts"
	"github.com/liqotech/liqo/pkg/liqo-controller-manager/authentication"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/nodes"
)

// These are the names of the two Secrets of the handshake (Liqo
// pkg/liqo-controller-manager/authentication/forge/{nonce,signednonce}.go).
const (
	nonceName       = "liqo-nonce"
	signedNonceName = "liqo-signed-nonce"
)

// handshake contains the proof of this cluster's identity.
type handshake struct {
	key       crypto.PrivateKey
	publicDER []byte // PKIX
	public    crypto.PublicKey
	nonce     []byte
	signature []byte
}

// readKeys reads the key pair that Liqo keeps for this cluster. The certificate request needs it. The key pair stays in
// memory while one verb runs.
func (p *peering) readKeys(ctx context.Context) (h handshake, err error) {
	if h.key, h.publicDER, err = authentication.GetClusterKeys(ctx, p.local, p.self.namespace); err != nil {
		return h, fmt.Errorf("read this cluster's Liqo keys: %w", err)
	}
	if h.public, err = x509.ParsePKIXPublicKey(h.publicDER); err != nil {
		return h, fmt.Errorf("read this cluster's Liqo keys: the public key is not PKIX")
	}
	return h, nil
}

// ensureNonce requests a nonce from the provider. It returns the nonce once the provider's Liqo has filled it in, and
// nil before.
func (p *peering) ensureNonce(ctx context.Context) (nonce []byte, message string, err error) {
	err = p.remote.do(ctx, "ask for a nonce", func(provider client.Client) error {
		var err error
		if p.remoteNS, message, err = ensureTenantNamespace(ctx, provider, p.self.id, p.signed(), nil); err != nil ||
			p.remoteNS == "" {
			return err
		}
		secret, err := nonceSecret(ctx, provider, p.remoteNS, consts.NonceSecretLabelKey, nonceName, p.self.id)
		if apierrors.IsNotFound(err) {
			message = fmt.Sprintf("Secret %s/%s was made", p.remoteNS, nonceName)
			return provider.Create(ctx, forgeNonce(p.remoteNS, nonceName, consts.NonceSecretLabelKey, p.self.id, p.signed(), nil,
				nil))
		}
		if err != nil {
			return err
		}
		nonce = secret.Data[consts.NonceSecretField]
		message = fmt.Sprintf("the provider's liqo-controller-manager has not filled Secret %s/%s yet", secret.Namespace,
			secret.Name)
		return nil
	})
	return nonce, message, err
}

// ensureSignedNonce makes our own Liqo sign the nonce. It returns the signature once it is valid, and nil before. A
// Secret of an earlier peering contains another nonce, which Liqo would keep forever (Liqo
// pkg/liqo-controller-manager/authentication/utils/nonce.go). ensureSignedNonce overwrites the nonce, and Liqo signs
// again.
func (p *peering) ensureSignedNonce(ctx context.Context, h handshake) (signature []byte, message string, err error) {
	secret, err := nonceSecret(ctx, p.local, p.localNS, consts.SignedNonceSecretLabelKey, signedNonceName, p.provider.ID)
	if apierrors.IsNotFound(err) {
		secret := forgeNonce(p.localNS, signedNonceName, consts.SignedNonceSecretLabelKey, p.provider.ID, p.labels(),
			p.annotations(), h.nonce)
		return nil, fmt.Sprintf("Secret %s/%s was made", secret.Namespace, secret.Name), p.local.Create(ctx, secret)
	}
	if err != nil {
		return nil, "", fmt.Errorf("read signed nonce: %w", err)
	}
	if string(secret.Data[consts.NonceSecretField]) != string(h.nonce) {
		message = fmt.Sprintf("the stale nonce in Secret %s/%s was overwritten", secret.Namespace, secret.Name)
		return nil, message, nodes.MergePatch(ctx, p.local, secret,
			map[string]any{"data": map[string][]byte{consts.NonceSecretField: h.nonce}})
	}
	signature = secret.Data[consts.SignedNonceSecretField]
	if ok, err := authentication.VerifyNonce(h.public, h.nonce, signature); err != nil || !ok {
		return nil, fmt.Sprintf("this cluster's liqo-controller-manager has not signed Secret %s/%s yet", secret.Namespace,
			secret.Name), nil
	}
	return signature, "", nil
}

func nonceSecret(ctx context.Context, cluster client.Client, namespace, label, name,
	peer string) (*corev1.Secret, error) {
	if namespace == "" {
		return nil, apierrors.NewNotFound(corev1.Resource("secrets"), name)
	}
	var found corev1.SecretList
	err := cluster.List(ctx, &found, client.InNamespace(namespace), client.HasLabels{label},
		client.MatchingLabels{consts.RemoteClusterID: peer})
	if err != nil {
		return nil, err
	}
	if len(found.Items) == 0 {
		return nil, apierrors.NewNotFound(corev1.Resource("secrets"), name)
	}
	return &found.Items[0], nil
}

func forgeNonce(namespace, name, label, peer string, labels, annotations map[string]string,
	nonce []byte) *corev1.Secret {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Name:        name,
		Namespace:   namespace,
		Labels:      with(labels, map[string]string{label: "true", consts.RemoteClusterID: peer}),
		Annotations: annotations,
	}}
	if nonce != nil {
		secret.Data = map[string][]byte{consts.NonceSecretField: nonce}
	}
	return secret
}
