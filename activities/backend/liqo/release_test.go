package liqo

import (
	"testing"
	"testing/synctest"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	"github.com/liqotech/liqo/pkg/consts"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

// held returns the object as terminating, with a finalizer that crd-replicator has no permission to remove.
func held[T client.Object](object T) T {
	now := metav1.Now()
	object.SetDeletionTimestamp(&now)
	object.SetFinalizers([]string{"crdreplicator.liqo.io/resource"})
	return object
}

// A provider has removed our Tenant, so crd-replicator cannot remove its own finalizers any longer. Return removes
// these finalizers.
func TestReturnRemovesFinalizersAfterTenantRemoval(t *testing.T) {
	t.Parallel()
	replica := accepted("2")
	replica.Namespace = remoteNS
	replica.Labels = with(replica.Labels, of(me), map[string]string{consts.ReplicationOriginLabel: me})
	c := newClusters(t, peered(held(accepted("2"))), []client.Object{tenantNS(me), replica})
	require.NoError(t, c.Return(prompt(t), someAttempt(1), nil))
	require.False(t, exists(t, c.local, accepted("2")))
	require.False(t, exists(t, c.there, replica))
}

// While the Tenant exists, or its state is unknown, Return waits for crd-replicator.
func TestReturnWaitsForCrdReplicator(t *testing.T) {
	t.Parallel()
	for name, down := range map[string]bool{"the Tenant exists": false, "the provider is unreachable": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := newClusters(t, peered(held(accepted("2"))), []client.Object{tenantNS(me), tenantOf(mine())})
				c.down = down
				err := c.Return(soon(t), someAttempt(1), nil)
				var stage *backend.StageError
				require.ErrorAs(t, err, &stage)
				require.Equal(t, backend.StageSliceGone, stage.Stage)
				require.True(t, exists(t, c.local, accepted("2")))
			})
		})
	}
}

// While the provider has our Tenant, only crd-replicator removes crd-replicator's finalizers.
func TestFinalizersStayWhileTheTenantExists(t *testing.T) {
	t.Parallel()
	slice := longHeld(replicatorFinalizers + "resource")
	c := newClusters(t, peered(slice), []client.Object{tenantNS(me), tenantOf(mine())})
	p := c.peering(provider())
	require.NoError(t, p.locateBoth(t.Context()))
	require.NoError(t, p.releaseRevoked(t.Context(), slice))
	require.True(t, exists(t, c.local, slice))
	require.NotEmpty(t, slice.Finalizers)
}

func TestReleaseKeepsForeignFinalizers(t *testing.T) {
	t.Parallel()
	slice := longHeld("example.com/theirs", replicatorFinalizers+"resource")
	c := newClusters(t, peered(slice), nil)
	require.NoError(t, c.local.Get(t.Context(), keyOf(slice), slice))
	require.NoError(t, c.peering(provider()).release(t.Context(), slice))
	require.NoError(t, c.local.Get(t.Context(), keyOf(slice), slice))
	require.Equal(t, []string{"example.com/theirs"}, slice.Finalizers)
}

// longHeld returns a slice that has been terminating for an hour.
func longHeld(finalizers ...string) *authv1beta1.ResourceSlice {
	slice, since := accepted("2"), metav1.NewTime(time.Now().Add(-time.Hour))
	slice.DeletionTimestamp, slice.Finalizers = &since, finalizers
	return slice
}

func heldRest() []client.Object {
	renew := &authv1beta1.Renew{ObjectMeta: named(localNS, "controlplane-"+peer, outgoing(peer))}
	namespaces := &offloadingv1beta1.NamespaceMap{ObjectMeta: named(localNS, peer, outgoing(peer))}
	return []client.Object{held(renew), held(namespaces), held(controlPlaneSecret())}
}

func TestRemovePeeringAfterTenantRemoval(t *testing.T) {
	t.Parallel()
	replica := &offloadingv1beta1.NamespaceMap{ObjectMeta: named(remoteNS, peer,
		map[string]string{consts.ReplicationOriginLabel: me})}
	c := newClusters(t, append(heldRest(), tenantNS(peer, mine())), []client.Object{tenantNS(me, mine()), replica})
	require.NoError(t, c.RemovePeering(prompt(t), provider(), nil))
	for _, object := range heldRest() {
		require.False(t, exists(t, c.local, object), "%T", object)
	}
	require.False(t, exists(t, c.local, tenantNS(peer)))
	require.False(t, exists(t, c.there, tenantNS(me)))
}

// Some objects of another owner's peering remain. RemovePeering neither waits for these objects nor changes them.
func TestRemovePeeringIgnoresForeignRemains(t *testing.T) {
	t.Parallel()
	rest := heldRest()
	rest = []client.Object{rest[0], rest[2], tenantNS(peer)}
	c := newClusters(t, rest, nil)
	require.NoError(t, c.RemovePeering(prompt(t), provider(), nil))
	for _, object := range rest {
		require.True(t, exists(t, c.local, object), "%T", object)
	}
}
