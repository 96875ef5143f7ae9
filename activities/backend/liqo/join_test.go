package liqo

import (
	"context"
	"testing"
	"testing/synctest"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	"github.com/liqotech/liqo/pkg/consts"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

func labelsOf(number string) map[string]string {
	return with(mine(), map[string]string{backend.LabelGroup: "g", backend.LabelInstance: "g-abc-1",
		backend.LabelAttempt: number})
}

// accepted returns the attempt's slice after the provider has granted it.
func accepted(grant string) *authv1beta1.ResourceSlice {
	condition := func(kind authv1beta1.ResourceSliceConditionType) authv1beta1.ResourceSliceCondition {
		return authv1beta1.ResourceSliceCondition{Type: kind, Status: authv1beta1.ResourceSliceConditionAccepted}
	}
	return &authv1beta1.ResourceSlice{
		ObjectMeta: named(localNS, "lca-g-abc-1-1", labelsOf("1"), outgoing(peer), of(peer)),
		Status: authv1beta1.ResourceSliceStatus{
			Resources:  shape(grant),
			NodeLabels: map[string]string{"zone": "far", "color": "theirs", fleet.LabelType: "theirs"},
			Conditions: []authv1beta1.ResourceSliceCondition{condition(authv1beta1.ResourceSliceConditionTypeAuthentication),
				condition(authv1beta1.ResourceSliceConditionTypeResources)},
		},
	}
}

func sliceIdentity() *authv1beta1.Identity {
	return &authv1beta1.Identity{ObjectMeta: named(localNS, "resourceslice-lca-g-abc-1-1"),
		Status: authv1beta1.IdentityStatus{
			KubeconfigSecretRef: &corev1.LocalObjectReference{Name: "kubeconfig-resourceslice-lca-g-abc-1-1"},
		}}
}

func running() *offloadingv1beta1.VirtualNode {
	return &offloadingv1beta1.VirtualNode{
		ObjectMeta: named(localNS, "lca-g-abc-1-1", labelsOf("1"), of(peer)),
		Status: offloadingv1beta1.VirtualNodeStatus{Conditions: []offloadingv1beta1.VirtualNodeCondition{
			{Type: offloadingv1beta1.VirtualKubeletConditionType, Status: offloadingv1beta1.RunningConditionStatusType}}},
	}
}

func readyNode(name, attempt string) *corev1.Node {
	meta := named("", name, of(peer), map[string]string{backend.LabelGroup: "g", fleet.LabelType: fleet.TypeVirtualNode})
	meta.Annotations = labelsOf(attempt)
	return &corev1.Node{
		ObjectMeta: meta,
		Status: corev1.NodeStatus{
			Allocatable: shape("2"),
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

func peered(more ...client.Object) []client.Object {
	return append(more, tenantNS(peer), controlPlane(), controlPlaneSecret(), established())
}

func spec() backend.NodeSpec {
	return backend.NodeSpec{Attempt: someAttempt(1), Shape: shape("2"),
		Labels: map[string]string{"color": "ours", fleet.LabelType: fleet.TypeVirtualNode},
		Taints: []corev1.Taint{{Key: "k", Value: "v", Effect: corev1.TaintEffectNoSchedule}}}
}

func TestJoinFailsWithoutAPeering(t *testing.T) {
	t.Parallel()
	c := newClusters(t, []client.Object{tenantNS(peer)}, nil)
	_, err := c.Join(prompt(t), spec(), nil)
	require.ErrorIs(t, err, backend.ErrNotPeered)
	require.ErrorContains(t, err, peer)
}

func TestJoinCreatesTheSlice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClusters(t, peered(), nil)
		_, err := c.Join(soon(t), spec(), nil)
		var stage *backend.StageError
		require.ErrorAs(t, err, &stage)
		require.Equal(t, backend.StageSliceAuth, stage.Stage)
		var slice authv1beta1.ResourceSlice
		require.NoError(t, c.local.Get(t.Context(), client.ObjectKey{Namespace: localNS, Name: "lca-g-abc-1-1"}, &slice))
		require.True(t, backend.Carries(slice.Labels, with(labelsOf("1"), outgoing(peer), of(peer))))
		require.NotContains(t, slice.Annotations, consts.CreateVirtualNodeAnnotation, "Liqo must not make the virtual node")
		require.Equal(t, authv1beta1.ResourceSliceClassDefault, slice.Spec.Class)
		found, err := c.List(t.Context(), backend.Scope{Group: "g"})
		require.NoError(t, err)
		require.Equal(t, peer, found[0].Attempt.Provider.ID)
		require.NotContains(t, slice.Annotations, backend.AnnotationBooking, "crd-replicator copies them to the provider")
		require.NotContains(t, slice.Annotations, backend.AnnotationCredentials)
	})
}

func TestJoinRefusesASmallerGrant(t *testing.T) {
	t.Parallel()
	c := newClusters(t, peered(accepted("1")), nil)
	_, err := c.Join(prompt(t), spec(), nil)
	require.ErrorIs(t, err, backend.ErrShort)
	require.ErrorContains(t, err, "cpu 1 of 2")
}

func TestJoinReportsADenial(t *testing.T) {
	t.Parallel()
	for i, kind := range []string{"Authentication", "Resources"} {
		slice := accepted("2")
		slice.Status.Conditions[i].Status = authv1beta1.ResourceSliceConditionDenied
		c := newClusters(t, peered(slice), nil)
		_, err := c.Join(prompt(t), spec(), nil)
		require.ErrorIs(t, err, backend.ErrDenied)
		require.ErrorContains(t, err, kind)
	}
}

// In later versions of Liqo, the administrators of a provider can disable the class "default". A slice of this class
// is then denied with its own reason (Liqo remoteresourceslice_controller.go, handleResourcesStatus).
func TestJoinReportsADisabledDefaultClass(t *testing.T) {
	t.Parallel()
	const words = "the default ResourceSlice class has been administratively disabled on the provider"
	slice := accepted("2")
	slice.Status.Conditions[1].Status = authv1beta1.ResourceSliceConditionDenied
	slice.Status.Conditions[1].Reason, slice.Status.Conditions[1].Message = "DefaultResourceSliceClassDisabled", words
	c := newClusters(t, peered(slice), nil)
	_, err := c.Join(prompt(t), spec(), nil)
	require.ErrorIs(t, err, backend.ErrDenied)
	require.ErrorContains(t, err, words)
}

// The slice requests the offer's class. If the controller of this class has no free capacity, Join reports ErrFull
// and not a refusal.
func TestFullClassIsNoRefusal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClusters(t, peered(), nil)
		classy := spec()
		classy.Class = "gold"
		_, err := c.Join(soon(t), classy, nil)
		require.Error(t, err) // no controller answers the slice
		var slice authv1beta1.ResourceSlice
		require.NoError(t, c.local.Get(t.Context(), client.ObjectKey{Namespace: localNS, Name: "lca-g-abc-1-1"}, &slice))
		require.EqualValues(t, "gold", slice.Spec.Class)
	})
	slice := accepted("2")
	slice.Status.Conditions[1].Status = authv1beta1.ResourceSliceConditionDenied
	slice.Status.Conditions[1].Reason = "NoCapacity"
	slice.Status.Conditions[1].Message = "not free on this provider: cpu 1 of 2"
	c := newClusters(t, peered(slice), nil)
	_, err := c.Join(prompt(t), spec(), nil)
	require.ErrorIs(t, err, backend.ErrFull)
	require.NotErrorIs(t, err, context.DeadlineExceeded, "it is not waited for")
	require.NotErrorIs(t, err, backend.ErrDenied)
	require.ErrorContains(t, err, "not free on this provider: cpu 1 of 2")
}

// A consumer with a drained Tenant may not request a slice, so the slice gets no answer. Join reads the reason from
// the Tenant.
func TestUnansweredSliceOfADrainedTenantIsDenied(t *testing.T) {
	t.Parallel()
	slice := accepted("2")
	slice.Status = authv1beta1.ResourceSliceStatus{}
	tenant := tenantOf(mine())
	tenant.Spec.TenantCondition = authv1beta1.TenantConditionDrained
	c := newClusters(t, peered(slice), []client.Object{tenantNS(me), tenant})
	_, err := c.Join(prompt(t), spec(), nil)
	require.ErrorIs(t, err, backend.ErrDenied)
	require.ErrorContains(t, err, "Drained")
}

func TestJoinMakesVirtualNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slice := accepted("3")
		delete(slice.Status.NodeLabels, "color")
		c := newClusters(t, peered(slice, sliceIdentity()), nil)
		_, err := c.Join(soon(t), spec(), nil)
		var stage *backend.StageError
		require.ErrorAs(t, err, &stage)
		require.Equal(t, backend.StageVirtualKubelet, stage.Stage)
		var virtual offloadingv1beta1.VirtualNode
		require.NoError(t, c.local.Get(t.Context(), client.ObjectKey{Namespace: localNS, Name: "lca-g-abc-1-1"}, &virtual))
		require.Equal(t, shape("2"), virtual.Spec.ResourceQuota.Hard, "the shape, not the larger grant")
		require.Equal(t, map[string]string{"color": "ours", backend.LabelGroup: "g", consts.RemoteClusterID: peer,
			fleet.LabelType: fleet.TypeVirtualNode}, virtual.Spec.Labels, "none that the group does not declare")
		require.Equal(t, labelsOf("1"), virtual.Spec.Annotations)
		require.Equal(t, spec().Taints, virtual.Spec.Taints)
		require.Equal(t, "lca-g-abc-1-1", virtual.Labels[consts.ResourceSliceNameLabelKey])
		require.Equal(t, "ResourceSlice", virtual.OwnerReferences[0].Kind)
		require.NotContains(t, virtual.Annotations, backend.AnnotationStamp)
		found, err := c.List(t.Context(), backend.Scope{Group: "g"})
		require.NoError(t, err)
		require.Equal(t, known(), found[0].Attempt.Provider)
		require.NotNil(t, found[0].Booking)
	})
}

// List returns a slice without a virtual node, together with the peering's credentials, so that Return can remove the
// slice.
func TestSliceWithoutVirtualNodeIsListed(t *testing.T) {
	identity := controlPlane(mine())
	identity.Annotations = map[string]string{backend.AnnotationCredentials: `{"kubeconfigFile":"provider1.kubeconfig"}`}
	c := newClusters(t, []client.Object{tenantNS(peer), identity, accepted("2")}, nil)
	found, err := c.List(t.Context(), backend.Scope{Group: "g"})
	require.NoError(t, err)
	require.Equal(t, known(), found[0].Attempt.Provider)
	require.Nil(t, found[0].Booking)
}

// For one label, the provider's nodes have a different value than the group. Join refuses such a provider.
func TestJoinRefusesContradictingLabels(t *testing.T) {
	c := newClusters(t, peered(accepted("2"), sliceIdentity()), nil)
	_, err := c.Join(prompt(t), spec(), nil)
	require.ErrorIs(t, err, backend.ErrDenied)
	require.ErrorContains(t, err, "color=theirs")
	require.False(t, exists(t, c.local, running()))
}

func joinable(more ...client.Object) []client.Object {
	node := readyNode("lca-g-abc-1-1", "1")
	node.Labels["color"] = "ours"
	node.Spec.Taints = spec().Taints
	return peered(append(more, accepted("2"), running(), node)...)
}

func TestJoinStampsTheNode(t *testing.T) {
	t.Parallel()
	c := newClusters(t, joinable(), nil)
	for range 2 {
		node, err := c.Join(prompt(t), spec(), nil)
		require.NoError(t, err)
		require.Equal(t, "lca-g-abc-1-1", node.Name)
	}
	found, err := c.List(t.Context(), backend.Scope{})
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.True(t, found[0].Marked && found[0].Stamped && found[0].Ready)
}

// When a Node becomes Ready, it keeps its previous taints for a moment, and accepts no pods until Kubernetes has
// removed them. CA counts a Node with the taint not-ready as not started, and a Node with any other of these taints
// as full. If the Node's condition was Unknown before, Kubernetes replaces the taint not-ready by the taint
// unreachable after a delay. Join waits until all of these taints are gone.
func TestJoinWaitsForTaintsToGo(t *testing.T) {
	t.Parallel()
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable,
		corev1.TaintNodeNetworkUnavailable} {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				objects := joinable()
				for _, object := range objects {
					if node, ok := object.(*corev1.Node); ok {
						node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoExecute})
					}
				}
				c := newClusters(t, objects, nil)
				_, err := c.Join(soon(t), spec(), nil)
				var stage *backend.StageError
				require.ErrorAs(t, err, &stage)
				require.Contains(t, stage.Message, key)
				found, err := c.List(t.Context(), backend.Scope{})
				require.NoError(t, err)
				require.Equal(t, key == corev1.TaintNodeNotReady, found[0].Starting)
				require.True(t, key != corev1.TaintNodeNotReady || found[0].Marked)
				require.False(t, found[0].Stamped)
			})
		})
	}
}

func TestJoinReportsConflicts(t *testing.T) {
	t.Parallel()
	stolen := joinable()
	for _, object := range stolen {
		if node, ok := object.(*corev1.Node); ok {
			node.Spec.ProviderID = "aws:///i-1"
		}
	}
	notOurs := accepted("2")
	notOurs.Labels = outgoing(peer)
	elsewhere := accepted("2")
	elsewhere.Labels[consts.ReplicationDestinationLabel] = "provider2"
	for name, here := range map[string][]client.Object{
		"providerID is taken":            stolen,
		"foreign slice":                  peered(notOurs),
		"slice on another provider":      peered(elsewhere),
		"virtual node vanished underway": peered(accepted("2"), removing()),
	} {
		t.Run(name, func(t *testing.T) {
			c := newClusters(t, here, nil)
			_, err := c.Join(prompt(t), spec(), nil)
			require.ErrorIs(t, err, backend.ErrConflict)
		})
	}
}

func removing() *offloadingv1beta1.VirtualNode {
	virtual := running()
	now := metav1.Now()
	virtual.DeletionTimestamp, virtual.Finalizers = &now, []string{"virtualnode-controller.liqo.io/finalizer"}
	return virtual
}
