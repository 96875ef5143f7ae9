package liqo

import (
	"context"
	"testing"
	"testing/synctest"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	"github.com/liqotech/liqo/pkg/consts"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

func TestEstablishNamesTheStage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		secret, _ := keys(t)
		c := newClusters(t, []client.Object{secret}, nil)
		err := c.Establish(soon(t), provider(), nil)
		var stage *backend.StageError
		require.ErrorAs(t, err, &stage)
		require.Equal(t, backend.StageNonce, stage.Stage)
		require.Contains(t, stage.Message, "liqo-controller-manager has not filled Secret liqo-tenant-consumer/liqo-nonce")

		// The objects of an unfinished peering carry our labels, so that recovery can find them.
		for cluster, object := range map[client.Client]client.Object{c.local: tenantNS(peer), c.there: tenantNS(me)} {
			require.NoError(t, cluster.Get(t.Context(), client.ObjectKeyFromObject(object), object))
			require.True(t, c.isOurs(me, object))
		}
		peers, err := c.Peers(t.Context(), "")
		require.NoError(t, err)
		require.Equal(t, []fleet.Provider{known()}, peers)
	})
}

func TestEstablishRefusesAnotherCluster(t *testing.T) {
	t.Parallel()
	c := newClusters(t, nil, nil)
	wrong := provider()
	wrong.ID = "provider2"
	err := c.Establish(prompt(t), wrong, nil)
	require.ErrorIs(t, err, backend.ErrInvalid)
	require.ErrorContains(t, err, "lead to cluster provider1")
	require.False(t, exists(t, c.there, tenantNS(me)))
}

func TestEstablishReportsUnreachableProvider(t *testing.T) {
	t.Parallel()
	c := newClusters(t, nil, nil)
	c.down = true
	require.ErrorIs(t, c.Establish(prompt(t), provider(), nil), backend.ErrUnreachable)
	require.Greater(t, c.opens, 1, "the credentials are read again after a failure")
}

func TestEstablishReportsAClosedTenant(t *testing.T) {
	t.Parallel()
	for _, owner := range []map[string]string{mine(), nil} {
		for _, condition := range []authv1beta1.TenantCondition{authv1beta1.TenantConditionCordoned,
			authv1beta1.TenantConditionDrained} {
			tenant := tenantOf(owner)
			tenant.Spec.TenantCondition = condition
			keypair, _ := keys(t)
			nonce := &corev1.Secret{ObjectMeta: named(remoteNS, nonceName, mine(), of(me),
				map[string]string{consts.NonceSecretLabelKey: "true"}),
				Data: map[string][]byte{"nonce": []byte("n")}}
			c := newClusters(t, []client.Object{keypair, tenantNS(peer, mine())}, []client.Object{tenantNS(me, mine()), tenant,
				nonce})
			sign(t, c, "n")
			err := c.Establish(prompt(t), provider(), nil)
			require.ErrorIs(t, err, backend.ErrDenied)
			require.ErrorContains(t, err, string(condition))
			require.NoError(t, c.there.Get(t.Context(), client.ObjectKeyFromObject(tenant), tenant))
			require.Equal(t, condition, tenant.Spec.TenantCondition, "Liqo's provider has the last word")
		}
	}
}

// sign creates the signed nonce on the consumer, as the consumer's Liqo would.
func sign(t *testing.T, c *clusters, nonce string) {
	t.Helper()
	p := c.peering(provider())
	require.NoError(t, p.locate(t.Context()))
	h, err := p.readKeys(t.Context())
	require.NoError(t, err)
	signature, err := signWith(h, nonce)
	require.NoError(t, err)
	require.NoError(t, c.local.Create(t.Context(), &corev1.Secret{
		ObjectMeta: named(localNS, signedNonceName, mine(), of(peer),
			map[string]string{consts.SignedNonceSecretLabelKey: "true"}),
		Data: map[string][]byte{"nonce": []byte(nonce), "signedNonce": signature},
	}))
}

// Establish overwrites a nonce that an earlier peering has left. It does not accept a signature of the old nonce as a
// signature of the new one.
func TestSignatureOfAnOldNonceIsNotAccepted(t *testing.T) {
	t.Parallel()
	keypair, _ := keys(t)
	c := newClusters(t, []client.Object{keypair, tenantNS(peer)}, nil)
	sign(t, c, "old")
	p := c.peering(provider())
	require.NoError(t, p.locate(t.Context()))
	h, err := p.readKeys(t.Context())
	require.NoError(t, err)
	h.nonce = []byte("new")
	for range 2 {
		signature, message, err := p.ensureSignedNonce(t.Context(), h)
		require.NoError(t, err)
		require.Nil(t, signature, message)
	}
	var secret corev1.Secret
	require.NoError(t, c.local.Get(t.Context(), client.ObjectKey{Namespace: localNS, Name: signedNonceName}, &secret))
	require.Equal(t, "new", string(secret.Data["nonce"]))
}

// Establish changes only the key, the request and the signature of an existing Tenant.
func TestExistingTenantIsChangedAsLittleAsPossible(t *testing.T) {
	t.Parallel()
	keypair, _ := keys(t)
	tenant := tenantOf(mine())
	policy := authv1beta1.KeysExchange
	tenant.Spec.AuthzPolicy, tenant.Spec.TenantCondition = &policy, authv1beta1.TenantConditionActive
	tenant.Spec.Signature = []byte("stale")
	tenant.UID = "t1"
	complaint := &corev1.Event{ObjectMeta: named(remoteNS, "e1"), InvolvedObject: corev1.ObjectReference{UID: "t1"},
		Type:   "Warning",
		Reason: "SignatureVerificationFailed", Message: "signature verification failed", LastTimestamp: metav1.Now()}
	c := newClusters(t, []client.Object{keypair, tenantNS(peer, mine())}, []client.Object{tenantNS(me, mine()), tenant,
		complaint})
	p := c.peering(provider())
	require.NoError(t, p.locate(t.Context()))
	require.NoError(t, p.locateRemote(t.Context()))
	h, err := p.readKeys(t.Context())
	require.NoError(t, err)
	h.signature = []byte("fresh")
	got, message, err := p.ensureTenant(t.Context(), h)
	require.NoError(t, err)
	require.Nil(t, got)
	require.Contains(t, message, "SignatureVerificationFailed: signature verification failed")
	require.NoError(t, c.there.Get(t.Context(), client.ObjectKeyFromObject(tenant), tenant))
	require.Equal(t, "fresh", string(tenant.Spec.Signature))
	require.Equal(t, authv1beta1.TenantConditionActive, tenant.Spec.TenantCondition)
	require.Equal(t, &policy, tenant.Spec.AuthzPolicy)

	// Establish keeps the certificate request that was made with our key, because a new request would not match the
	// certificate that the provider has cached.
	csr := tenant.Spec.CSR
	_, _, err = p.ensureTenant(t.Context(), h)
	require.NoError(t, err)
	require.NoError(t, c.there.Get(t.Context(), client.ObjectKeyFromObject(tenant), tenant))
	require.Equal(t, csr, tenant.Spec.CSR)
}

// Establish uses a peering that was made by hand and writes nothing. It recognizes such a peering by any of its
// parts.
func TestEstablishUsesAForeignPeering(t *testing.T) {
	t.Parallel()
	byHand := controlPlaneSecret()
	byHand.OwnerReferences = nil
	for name, here := range map[string][]client.Object{
		"Identity": {tenantNS(peer), controlPlane(), controlPlaneSecret(), established(), oldRenew()},
		"Secret":   {tenantNS(peer), byHand, established()},
		"Tenant":   {tenantNS(peer), controlPlane(mine()), controlPlaneSecret(), established(), oldRenew()},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClusters(t, here, []client.Object{tenantNS(me), tenantOf()})
			before := dump(t, c)
			require.NoError(t, c.Establish(prompt(t), provider(), nil))
			require.Equal(t, before, dump(t, c))
		})
	}
}

// Another owner creates a Tenant while Establish runs. Establish does not change this Tenant.
func TestEstablishLeavesANewForeignTenant(t *testing.T) {
	t.Parallel()
	keypair, _ := keys(t)
	c := newClusters(t, []client.Object{tenantNS(peer), keypair}, []client.Object{tenantNS(me), tenantOf()})
	p := c.peering(provider())
	require.NoError(t, p.locateBoth(t.Context()))
	h, err := p.readKeys(t.Context())
	require.NoError(t, err)
	before := dump(t, c)
	_, _, err = p.ensureTenant(t.Context(), h)
	require.ErrorIs(t, err, backend.ErrConflict)
	require.ErrorContains(t, err, "somebody else")
	require.Equal(t, before, dump(t, c))
}

func oldRenew() *authv1beta1.Renew {
	return &authv1beta1.Renew{ObjectMeta: named(localNS, "controlplane-"+peer),
		Status: authv1beta1.RenewStatus{AuthParams: &authv1beta1.AuthParams{}}}
}

// dump returns the resource versions of all objects of the kinds that a peering has. Each key of the result names an
// object.
func dump(t *testing.T, c *clusters) map[string]string {
	t.Helper()
	found := map[string]string{}
	for where, cluster := range map[string]client.Client{"here": c.local, "there": c.there} {
		for _, list := range []client.ObjectList{&corev1.NamespaceList{}, &corev1.SecretList{}, &authv1beta1.IdentityList{},
			&authv1beta1.TenantList{}, &authv1beta1.ResourceSliceList{}} {
			require.NoError(t, cluster.List(context.Background(), list))
			for _, object := range items(t, list) {
				if object.GetName() != metav1.NamespaceSystem {
					found[where+"/"+object.GetNamespace()+"/"+object.GetName()] += object.GetResourceVersion() + ";"
				}
			}
		}
	}
	return found
}

// A ForeignCluster may still show the state of an earlier peering. Only a Renew that the provider has answered proves
// that the current peering works.
func TestEstablishIgnoresAStaleForeignCluster(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		renew := oldRenew()
		renew.Status.AuthParams = nil
		c := newClusters(t, []client.Object{tenantNS(peer), controlPlane(), controlPlaneSecret(), established(), renew},
			[]client.Object{tenantNS(me), tenantOf()})
		err := c.Establish(soon(t), provider(), nil)
		var stage *backend.StageError
		require.ErrorAs(t, err, &stage)
		require.Equal(t, backend.StageReachable, stage.Stage)
		require.Contains(t, stage.Message, "Renew")
	})
}
