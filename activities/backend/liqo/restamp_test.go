package liqo

import (
	"context"
	"testing"

	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	"github.com/liqotech/liqo/pkg/consts"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/nodes"
)

// Restamp does not stamp a Node while Kubernetes or the virtual kubelet is still changing the Node. If both report
// that the Node is not ready, no further change follows. Restamp then stamps the Node, and CA sees that it is not
// ready.
func TestRestampWaitsForTheNode(t *testing.T) {
	t.Parallel()
	const noSchedule, noExecute = corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute
	for name, test := range map[string]struct {
		ready  corev1.ConditionStatus
		taints []corev1.Taint
		labels map[string]string // labels in the spec of the virtual node
		want   error
	}{
		"finished": {ready: corev1.ConditionTrue},
		"taint not-ready": {ready: corev1.ConditionTrue, want: backend.ErrNotYet,
			taints: []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: noSchedule}}},
		"taint unreachable": {ready: corev1.ConditionTrue, want: backend.ErrNotYet,
			taints: []corev1.Taint{{Key: corev1.TaintNodeUnreachable, Effect: noSchedule}}},
		"lacks a label": {ready: corev1.ConditionTrue, labels: map[string]string{"color": "ours"}, want: backend.ErrNotYet},
		"says nothing yet": {ready: corev1.ConditionUnknown, want: backend.ErrNotYet,
			taints: []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: noSchedule}}},
		"not ready, as Kubernetes does not know yet": {ready: corev1.ConditionFalse, want: backend.ErrNotYet,
			taints: []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: noSchedule}}},
		"not ready": {ready: corev1.ConditionFalse,
			taints: []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: noExecute}}},
		"not ready, and one of its taints is of before": {ready: corev1.ConditionFalse, want: backend.ErrNotYet,
			taints: []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: noExecute},
				{Key: corev1.TaintNodeUnreachable, Effect: noSchedule}}},
	} {
		t.Run(name, func(t *testing.T) {
			virtual, node := stampedNode()[0].(*offloadingv1beta1.VirtualNode), readyNode("lca-g-abc-1-1", "1")
			virtual.Spec.Labels = test.labels
			node.Status.Conditions[0].Status, node.Spec.Taints = test.ready, test.taints
			c := newClusters(t, []client.Object{virtual, node}, nil)
			require.ErrorIs(t, c.Restamp(t.Context(), someAttempt(1)), test.want)
			require.NoError(t, c.local.Get(t.Context(), keyOf(node), node))
			require.Equal(t, test.want == nil, node.Spec.ProviderID != "")
		})
	}
}

// Restamp has returned ErrNotYet because of a taint. Watch reports the Node when this taint is removed, even if
// nothing else in the report has changed.
func TestWatchReportsRemovedTaint(t *testing.T) {
	t.Parallel()
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			node := readyNode("lca-g-abc-1-1", "1")
			node.Spec.Taints = []corev1.Taint{{Key: key, Effect: corev1.TaintEffectNoSchedule}}
			c := newClusters(t, []client.Object{stampedNode()[0], node}, nil)
			ctx, cancel := context.WithCancel(t.Context())
			told, done, begun := c.beginWatch(ctx, t)
			require.True(t, (<-told).Node)
			require.ErrorIs(t, c.Restamp(ctx, someAttempt(1)), backend.ErrNotYet)
			begun()
			require.NoError(t, nodes.MergePatch(ctx, c.local, node, map[string]any{"spec": map[string]any{"taints": nil}}))
			require.True(t, (<-told).Node)
			require.NoError(t, c.Restamp(ctx, someAttempt(1)))
			cancel()
			require.ErrorIs(t, <-done, context.Canceled)
		})
	}
}

func TestRestampSetsTheInstanceID(t *testing.T) {
	t.Parallel()
	marked := stampedNode()
	lost := readyNode("lca-g-abc-1-1", "1")
	stolen := readyNode("lca-g-abc-1-1", "1")
	stolen.Spec.ProviderID = "aws:///i-1"
	twin := readyNode("lca-g-abc-1-2", "2")
	twin.Spec.ProviderID = someAttempt(1).InstanceID()
	for name, test := range map[string]struct {
		objects []any
		want    error
		id      string
	}{
		"lost":                   {objects: []any{marked[0], lost}, id: someAttempt(1).InstanceID()},
		"stamped":                {objects: []any{marked[0], marked[1]}, id: someAttempt(1).InstanceID()},
		"virtual node is going":  {objects: []any{held(marked[0].DeepCopyObject().(client.Object)), lost}},
		"not marked":             {objects: []any{running(), lost}},
		"no virtual node":        {objects: []any{lost}},
		"set by another party":   {objects: []any{marked[0], stolen}, want: backend.ErrConflict, id: "aws:///i-1"},
		"another attempt has it": {objects: []any{marked[0], lost, twin}, want: backend.ErrConflict},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClusters(t, copies(test.objects), nil)
			require.ErrorIs(t, c.Restamp(t.Context(), someAttempt(1)), test.want)
			node := readyNode("lca-g-abc-1-1", "1")
			require.NoError(t, c.local.Get(t.Context(), keyOf(node), node))
			require.Equal(t, test.id, node.Spec.ProviderID)
		})
	}
	require.NoError(t, newClusters(t, nil, nil).Restamp(t.Context(), someAttempt(1)))
}

// An earlier version of the worker set all of its tags on a Node as labels, which CA compares. Restamp recognizes
// such a Node by its virtual node, removes the labels and sets the tags as annotations.
func TestRestampReplacesLabelsByAnnotations(t *testing.T) {
	t.Parallel()
	virtual := stampedNode()[0].DeepCopyObject().(*offloadingv1beta1.VirtualNode)
	virtual.Spec.Labels = with(labelsOf("1"), of(peer), map[string]string{"color": "ours"})
	node := readyNode("lca-g-abc-1-1", "1")
	node.Labels["color"] = "ours"
	c := newClusters(t, []client.Object{virtual, node}, nil)
	for range 2 {
		require.NoError(t, c.Restamp(t.Context(), someAttempt(1)))
		require.NoError(t, c.local.Get(t.Context(), client.ObjectKeyFromObject(virtual), virtual))
		require.Equal(t, map[string]string{backend.LabelGroup: "g", "color": "ours", consts.RemoteClusterID: peer},
			virtual.Spec.Labels)
		require.Equal(t, labelsOf("1"), virtual.Spec.Annotations)
	}
}

// Join, or another worker, stamps the Node between the two reads of a Restamp. Restamp does not report a conflict.
func TestRestampAfterAnotherStampIsNoConflict(t *testing.T) {
	t.Parallel()
	marked := stampedNode()
	c := newClusters(t, copies([]any{marked[0], marked[1]}), nil)
	a := c.attempt(someAttempt(1))
	a.local = interceptor.NewClient(c.watch, interceptor.Funcs{
		Get: func(ctx context.Context, w client.WithWatch, key client.ObjectKey, o client.Object,
			opts ...client.GetOption) error {
			err := w.Get(ctx, key, o, opts...)
			if node, ok := o.(*corev1.Node); ok {
				node.Spec.ProviderID = "" // the state before that stamp
			}
			return err
		},
	})
	require.NoError(t, a.restamp(t.Context()))
}
