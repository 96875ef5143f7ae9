package liqo

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

// A Ready, stamped Node that has lost our annotations, our label or all of its labels still counts as existing, and
// the backend restores the lost values. A Node of that name with another providerID belongs to another owner.
func TestNodeWithoutOurTagsStillExists(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		strip func(*corev1.Node)
		ours  bool
	}{
		"annotations": {func(n *corev1.Node) { n.Annotations = nil }, true},
		"our label":   {func(n *corev1.Node) { n.Labels = of(peer) }, true},
		"all":         {func(n *corev1.Node) { n.Labels, n.Annotations = nil, nil }, true},
		"another's":   {func(n *corev1.Node) { n.Labels, n.Annotations, n.Spec.ProviderID = nil, nil, "aws:///i-1" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := stampedNode()
			c.strip(objects[1].(*corev1.Node))
			clusters := newClusters(t, peered(objects...), nil)
			found, err := clusters.List(t.Context(), backend.Scope{})
			require.NoError(t, err)
			require.Len(t, found, 1)
			require.Equal(t, c.ours, found[0].Node)
			require.Equal(t, c.ours, found[0].Stamped)
			if !c.ours {
				return
			}
			require.NoError(t, clusters.Restamp(t.Context(), someAttempt(1)))
			var node corev1.Node
			require.NoError(t, clusters.local.Get(t.Context(), client.ObjectKey{Name: "lca-g-abc-1-1"}, &node))
			require.Equal(t, "g", node.Labels[backend.LabelGroup])
			attempt, ok := backend.AttemptOf(node.Annotations)
			require.True(t, ok)
			require.Equal(t, "g-abc-1", attempt.Instance)
		})
	}
}
