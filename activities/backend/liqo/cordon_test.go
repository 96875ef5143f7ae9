package liqo

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

// Cluster Autoscaler sets a taint after we have read the Node and before we write it. The cordon fails, and the taint
// stays.
func TestCordonFailsWhenTheNodeWasTaintedMeanwhile(t *testing.T) {
	t.Parallel()
	byCA := corev1.Taint{Key: backend.TaintToBeDeleted, Value: "1", Effect: corev1.TaintEffectNoSchedule}
	node := readyNode("lca-g-abc-1-1", "1")
	c := newClusters(t, peered(stampedNode()...), nil)
	c.local = interceptor.NewClient(c.watch, interceptor.Funcs{Patch: func(ctx context.Context, w client.WithWatch,
		o client.Object, patch client.Patch, opts ...client.PatchOption) error {
		require.NoError(t, w.Get(ctx, keyOf(node), node))
		node.Spec.Taints = append(node.Spec.Taints, byCA)
		require.NoError(t, w.Update(ctx, node))
		return w.Patch(ctx, o, patch, opts...)
	}})
	err := c.Cordon(t.Context(), someAttempt(1), true)
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.NoError(t, c.watch.Get(t.Context(), keyOf(node), node))
	require.Equal(t, []corev1.Taint{byCA}, node.Spec.Taints)
}
