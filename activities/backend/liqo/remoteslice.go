package liqo

import (
	"context"
	"fmt"
	"strings"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	"github.com/liqotech/liqo/pkg/consts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/nodes"
)

// remoteSliceGone searches the provider itself for a copy of the slice, and deletes this copy. Such a copy is left
// when crd-replicator has restarted and cannot reach the provider: crd-replicator then releases only the slice on the
// consumer (Liqo internal/crdReplicator/reflection/handler.go). remoteSliceGone first uses the given kubeconfigs of
// our own Liqo, which always have the permission, and then the credentials of the provider's offer.
func (a *attempt) remoteSliceGone(ctx context.Context, secrets []corev1.Secret) (bool, string, error) {
	for i := range secrets {
		if gone, message, err := a.removeAsLiqo(ctx, &secrets[i]); err == nil {
			return gone, message, nil
		}
	}
	if err := a.locateRemote(ctx); err != nil {
		return false, "", err
	}
	return a.removeOverCredentials(ctx)
}

// removeOverCredentials checks and removes the copy with the credentials of the provider's offer. The caller must
// have called locateRemote.
func (a *attempt) removeOverCredentials(ctx context.Context) (gone bool, message string, err error) {
	if a.remoteNS == "" {
		return true, "", nil
	}
	err = a.remote.do(ctx, "look for our slice", func(provider client.Client) (err error) {
		gone, message, err = a.removeRemote(ctx, provider, a.remoteNS)
		return err
	})
	return gone, message, err
}

// removeAsLiqo checks and removes the copy with the kubeconfig that Liqo made for the peering.
func (a *attempt) removeAsLiqo(ctx context.Context, secret *corev1.Secret) (bool, string, error) {
	namespace := secret.Annotations[consts.RemoteTenantNamespaceAnnotKey]
	if namespace == "" {
		return false, "", fmt.Errorf("Secret %s names no remote namespace", secret.Name)
	}
	config, err := inlineConfig(secret.Data[consts.KubeconfigSecretField])
	if err != nil {
		return false, "", err
	}
	provider, err := newProviderClient(config)
	if err != nil {
		return false, "", err
	}
	return a.removeRemote(ctx, provider, namespace)
}

func (a *attempt) removeRemote(ctx context.Context, provider client.Client, namespace string) (bool, string, error) {
	var slice authv1beta1.ResourceSlice
	err := provider.Get(ctx, client.ObjectKey{Namespace: namespace, Name: a.name()}, &slice)
	if apierrors.IsNotFound(err) {
		return true, "", nil
	}
	if err != nil {
		return false, "", err
	}
	if !a.mine(&slice) || slice.Labels[consts.ReplicationOriginLabel] != a.self.id {
		return true, "", nil // another owner's slice, with the same name by chance
	}
	if slice.DeletionTimestamp == nil {
		if err := nodes.DeleteThis(ctx, provider, &slice); err != nil {
			return false, "", err
		}
	}
	return false, fmt.Sprintf("ResourceSlice %s/%s is still there on provider %s", namespace, slice.Name, a.Provider.ID),
		nil
}

// certificateGone deletes the provider's copy of the slice's certificate. A failure does no harm: slice names are never
// used again, the certificate has no permissions any longer, and it is removed with the tenant namespace.
func (a *attempt) certificateGone(ctx context.Context) error {
	if err := a.locateRemote(ctx); err != nil || a.remoteNS == "" {
		return err
	}
	return a.remote.do(ctx, "delete certificate", func(provider client.Client) error {
		return deleteCertificate(ctx, provider, a.remoteNS, a.name())
	})
}

// certificatePrefix plus the slice's name is the name of the slice's certificate on the provider. Liqo never removes
// this certificate (Liqo pkg/identityManager/certificateIdentityProvider.go).
const certificatePrefix = "liqo-remote-certificate-"

func deleteCertificate(ctx context.Context, provider client.Client, namespace, slice string) error {
	return client.IgnoreNotFound(provider.Delete(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: certificatePrefix + slice}}))
}

// deleteCertificates deletes the certificates of all slices after the last slice is gone, because Liqo may have made a
// certificate again while its slice was being deleted.
func deleteCertificates(ctx context.Context, provider client.Client, namespace string) error {
	var secrets corev1.SecretList
	if err := provider.List(ctx, &secrets, client.InNamespace(namespace)); err != nil {
		return err
	}
	for i := range secrets.Items {
		slice, is := strings.CutPrefix(secrets.Items[i].Name, certificatePrefix)
		if !is {
			continue
		}
		if err := deleteCertificate(ctx, provider, namespace, slice); err != nil {
			return err
		}
	}
	return nil
}
