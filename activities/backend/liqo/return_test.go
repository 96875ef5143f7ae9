package liqo

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/liqotech/liqo/pkg/consts"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

func podOn(node, name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: named("work", name), Spec: corev1.PodSpec{NodeName: node}}
}

func stampedNode() []client.Object {
	virtual, node := running(), readyNode("lca-g-abc-1-1", "1")
	virtual.Annotations = map[string]string{backend.AnnotationStamp: someAttempt(1).InstanceID()}
	node.Spec.ProviderID = someAttempt(1).InstanceID()
	return []client.Object{virtual, node, accepted("2")}
}

func TestDrainEvictsPods(t *testing.T) {
	t.Parallel()
	yes := true
	daemon, mirror := podOn("lca-g-abc-1-1", "daemon"), podOn("lca-g-abc-1-1", "mirror")
	daemon.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", UID: "d",
		Controller: &yes}}
	mirror.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	plain, elsewhere := podOn("lca-g-abc-1-1", "plain"), podOn("plain-0", "elsewhere")
	for _, force := range []bool{false, true} {
		c := newClusters(t, append(peered(stampedNode()...), daemon.DeepCopy(), mirror.DeepCopy(), plain.DeepCopy(),
			elsewhere.DeepCopy()), nil)
		require.NoError(t, c.Drain(prompt(t), someAttempt(1), force, nil))
		require.False(t, exists(t, c.local, plain))
		for _, pod := range []client.Object{daemon, mirror, elsewhere} {
			require.True(t, exists(t, c.local, pod), pod.GetName())
		}
		var node corev1.Node
		require.NoError(t, c.local.Get(t.Context(), client.ObjectKey{Name: "lca-g-abc-1-1"}, &node))
		require.True(t, node.Spec.Unschedulable)
		require.Equal(t, force, len(node.Spec.Taints) > 0, "only a forced drain has CA count the Node as deleted")
		found, err := c.List(t.Context(), backend.Scope{})
		require.NoError(t, err)
		require.False(t, found[0].Marked, "a draining node is not stamped again")
		require.True(t, found[0].Stamped)
	}
}

// A forced drain first sets the taint by which CA counts the Node as deleted, and then removes the pods. If CA has
// set this taint before, it stays unchanged. Other taints stay, too.
func TestDrainForceTaintsFirst(t *testing.T) {
	t.Parallel()
	other := corev1.Taint{Key: "k", Value: "v", Effect: corev1.TaintEffectNoSchedule}
	byCA := corev1.Taint{Key: backend.TaintToBeDeleted, Value: "1700000000", Effect: corev1.TaintEffectNoSchedule}
	for name, taints := range map[string][]corev1.Taint{"none yet": {other}, "by CA": {other, byCA}} {
		t.Run(name, func(t *testing.T) {
			objects := stampedNode()
			objects[1].(*corev1.Node).Spec.Taints = taints
			c := newClusters(t, append(peered(objects...), podOn("lca-g-abc-1-1", "plain")), nil)
			read := func() []corev1.Taint {
				var node corev1.Node
				require.NoError(t, c.watch.Get(t.Context(), client.ObjectKey{Name: "lca-g-abc-1-1"}, &node))
				return node.Spec.Taints
			}
			var atDelete []corev1.Taint
			c.local = interceptor.NewClient(c.watch, interceptor.Funcs{
				Delete: func(ctx context.Context, cluster client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
					atDelete = read()
					return cluster.Delete(ctx, o, opts...)
				},
			})
			for range 2 {
				require.NoError(t, c.Drain(prompt(t), someAttempt(1), true, nil))
			}
			require.Len(t, atDelete, 2)
			require.Equal(t, other, atDelete[0])
			require.Equal(t, atDelete, read(), "the second drain leaves it as it is")
			mark := atDelete[1]
			if len(taints) > 1 {
				require.Equal(t, byCA, mark)
				return
			}
			require.Equal(t, backend.TaintToBeDeleted, mark.Key)
			require.Equal(t, corev1.TaintEffectNoSchedule, mark.Effect)
			seconds, err := strconv.ParseInt(mark.Value, 10, 64)
			require.NoError(t, err)
			require.WithinDuration(t, time.Now(), time.Unix(seconds, 0), time.Minute)
		})
	}
}

// A Node of another owner has the attempt's name. Drain and Return do not change this Node.
func TestDrainAndReturnLeaveForeignNodesAlone(t *testing.T) {
	t.Parallel()
	node := &corev1.Node{ObjectMeta: named("", "lca-g-abc-1-1")}
	pod := podOn("lca-g-abc-1-1", "plain")
	c := newClusters(t, peered(node, pod), nil)
	require.NoError(t, c.Drain(prompt(t), someAttempt(1), true, nil))
	require.NoError(t, c.Return(prompt(t), someAttempt(1), nil))
	require.True(t, exists(t, c.local, pod))
	require.NoError(t, c.local.Get(t.Context(), client.ObjectKeyFromObject(node), node))
	require.False(t, node.Spec.Unschedulable)
}

func TestReturnRemovesTheAttempt(t *testing.T) {
	t.Parallel()
	replica := accepted("2")
	replica.Namespace = remoteNS
	replica.Labels = with(replica.Labels, of(me), map[string]string{consts.ReplicationOriginLabel: me})
	certificate := &corev1.Secret{ObjectMeta: named(remoteNS, "liqo-remote-certificate-lca-g-abc-1-1", of(me))}
	other := &corev1.Secret{ObjectMeta: named(remoteNS, "liqo-remote-certificate", of(me))}
	c := newClusters(t, peered(append(stampedNode(), podOn("lca-g-abc-1-1", "plain"))...), []client.Object{tenantNS(me),
		replica, certificate, other})
	require.NoError(t, c.Return(prompt(t), someAttempt(1), nil))
	found, err := c.List(t.Context(), backend.Scope{})
	require.NoError(t, err)
	require.Empty(t, found)
	require.False(t, exists(t, c.there, replica), "the slice that crd-replicator has forgotten goes too")
	require.False(t, exists(t, c.there, certificate))
	require.True(t, exists(t, c.there, other))
	require.True(t, exists(t, c.local, controlPlane()), "the peering stays")
	require.NoError(t, c.Return(prompt(t), someAttempt(1), nil), "twice")
}

// Return deletes the virtual node before its Node, because a running virtual kubelet would register the Node again. The
// Node stays until the virtual kubelet has ended.
func TestReturnDeletesNodeLast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kubelet := &corev1.Pod{ObjectMeta: named(localNS, "vk", map[string]string{consts.VirtualNodeLabel: "lca-g-abc-1-1"}),
			Status: corev1.PodStatus{Phase: corev1.PodRunning}}
		c := newClusters(t, append(peered(stampedNode()...), kubelet), []client.Object{tenantNS(me)})
		var deleted []string
		c.local = interceptor.NewClient(c.watch, interceptor.Funcs{
			Delete: func(ctx context.Context, cluster client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
				deleted = append(deleted, fmt.Sprintf("%T", o))
				return cluster.Delete(ctx, o, opts...)
			},
		})
		err := c.Return(soon(t), someAttempt(1), nil)
		var stage *backend.StageError
		require.ErrorAs(t, err, &stage)
		require.Equal(t, backend.StageNodeGone, stage.Stage)
		require.Contains(t, stage.Message, localNS+"/vk")
		require.Equal(t, []string{"*v1beta1.VirtualNode"}, deleted)

		kubelet.Status.Phase = corev1.PodSucceeded
		require.NoError(t, c.watch.Status().Update(t.Context(), kubelet))
		require.NoError(t, c.Return(prompt(t), someAttempt(1), nil))
		require.Equal(t, []string{"*v1beta1.VirtualNode", "*v1.Node", "*v1beta1.ResourceSlice"}, deleted)
	})
}

// The pod of a virtual kubelet never finishes its termination if the node on which it runs is lost. Such a kubelet
// does not register a Node again, so Return does not wait for it.
func TestReturnIgnoresALostKubelet(t *testing.T) {
	t.Parallel()
	past := metav1.NewTime(time.Now().Add(-time.Minute))
	kubelet := &corev1.Pod{ObjectMeta: named(localNS, "vk", map[string]string{consts.VirtualNodeLabel: "lca-g-abc-1-1"})}
	kubelet.DeletionTimestamp, kubelet.Finalizers = &past, []string{"example.org/lost"}
	c := newClusters(t, append(peered(stampedNode()...), kubelet), []client.Object{tenantNS(me)})
	require.NoError(t, c.Return(prompt(t), someAttempt(1), nil))
}

// When the peering is gone, only this product removes the provider's copy of a slice. Only the consumer's slice shows
// that this copy exists. Return therefore removes the consumer's slice last, also when it runs in passes.
func TestReturnWithoutPeeringRemovesConsumersSliceLast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClusters(t, []client.Object{tenantNS(peer), accepted("2")}, []client.Object{tenantNS(me)})
		c.down = true
		require.ErrorIs(t, c.Return(soon(t), someAttempt(1), nil), backend.ErrUnreachable)
		require.True(t, exists(t, c.local, accepted("2")))
		c.down = false
		require.NoError(t, c.Return(prompt(t), someAttempt(1), nil))
		require.False(t, exists(t, c.local, accepted("2")))
	})
}

func TestReturnWaitsForAnUnreachableProvider(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClusters(t, peered(stampedNode()...), []client.Object{tenantNS(me)})
		c.down = true
		err := c.Return(seconds(t), someAttempt(1), nil)
		var stage *backend.StageError
		require.ErrorAs(t, err, &stage)
		require.Equal(t, backend.StageSliceGone, stage.Stage)
		require.ErrorIs(t, err, backend.ErrUnreachable)
		require.False(t, exists(t, c.local, running()))
	})
}

// A Return of an attempt without objects does not need the provider, because the provider's credentials may be gone
// permanently.
func TestReturnOfAnEmptyAttemptNeedsNoProvider(t *testing.T) {
	t.Parallel()
	c := newClusters(t, nil, nil)
	c.down = true
	require.NoError(t, c.Return(prompt(t), someAttempt(1), nil))
	require.NoError(t, c.Drain(prompt(t), someAttempt(1), false, nil))
	require.Zero(t, c.opens)
}

// Liqo up to 1.1 also evicts the pods of DaemonSets, and waits for them without end. Return removes these pods, so
// that Liqo does not wait.
func TestReturnRemovesDaemonSetPodsForLiqo(t *testing.T) {
	t.Parallel()
	yes, now := true, metav1.Now()
	daemon := podOn("lca-g-abc-1-1", "daemon")
	daemon.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", UID: "d",
		Controller: &yes}}
	evicted := daemon.DeepCopy()
	evicted.Name, evicted.DeletionTimestamp, evicted.Finalizers = "evicted", &now, []string{"example.org/kubelet"}
	c := newClusters(t, peered(removing(), daemon, evicted), nil)
	a := c.attempt(someAttempt(1))
	require.NoError(t, a.locate(t.Context()))
	deleted := 0
	a.local = interceptor.NewClient(c.watch, interceptor.Funcs{
		Delete: func(ctx context.Context, cluster client.WithWatch, object client.Object,
			options ...client.DeleteOption) error {
			deleted++
			require.Equal(t, "evicted", object.GetName())
			return cluster.Delete(ctx, object, options...)
		},
	})
	require.NoError(t, a.removeVirtualNode(t.Context(), removing()))
	require.Equal(t, 1, deleted)
}

// A deleted pod is past its grace period, and only the finalizer of another owner keeps the pod. Such a pod no longer
// runs. It delays neither Drain nor Return. It does not delay Liqo either, which removes virtual nodes one after
// another.
func TestReturnIgnoresPodsKeptByAFinalizer(t *testing.T) {
	t.Parallel()
	now := metav1.Now()
	held := podOn("lca-g-abc-1-1", "held")
	held.Labels = map[string]string{consts.LocalPodLabelKey: consts.LocalPodLabelValue, "app": "x"}
	held.DeletionTimestamp, held.DeletionGracePeriodSeconds, held.Finalizers = &now, ptr.To(int64(0)),
		[]string{"example.org/dead"}
	c := newClusters(t, peered(append(stampedNode(), held)...), []client.Object{tenantNS(me)})
	require.NoError(t, c.Drain(prompt(t), someAttempt(1), false, nil))
	require.NoError(t, c.Return(prompt(t), someAttempt(1), nil))
	found, err := c.List(t.Context(), backend.Scope{})
	require.NoError(t, err)
	require.Empty(t, found)
	require.NoError(t, c.local.Get(t.Context(), keyOf(held), held), "it stays whoever's it is")
	require.Equal(t, []string{"example.org/dead"}, held.Finalizers)
	require.Equal(t, map[string]string{"app": "x"}, held.Labels, "Liqo waits for pods by its label")

	// Return waits for a pod that is still within its termination period.
	held = podOn("lca-g-abc-1-1", "held")
	held.DeletionTimestamp, held.DeletionGracePeriodSeconds, held.Finalizers = &now, ptr.To(int64(30)),
		[]string{"example.org/dead"}
	c = newClusters(t, peered(append(stampedNode(), held)...), nil)
	require.ErrorIs(t, c.Drain(soon(t), someAttempt(1), false, nil), context.DeadlineExceeded)
}
