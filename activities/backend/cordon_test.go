package backend_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

// SetCordon uncordons a Node only if the Node has our cordon and no taint of Cluster Autoscaler.
func TestSetCordonRemovesOnlyOurCordon(t *testing.T) {
	tainted := func(key string) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: key, Effect: corev1.TaintEffectNoSchedule}} }
	}
	ours := func(n *corev1.Node) { require.True(t, backend.SetCordon(n, true)) }
	theirs := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	for name, c := range map[string]struct {
		before        []func(*corev1.Node)
		cordon        bool
		changes, stop bool // whether SetCordon changes the Node, and whether the Node is cordoned afterwards
	}{
		"plain, cordon":            {cordon: true, changes: true, stop: true},
		"plain, uncordon":          {},
		"ours, cordon":             {before: []func(*corev1.Node){ours}, cordon: true, stop: true},
		"ours, uncordon":           {before: []func(*corev1.Node){ours}, changes: true},
		"theirs, cordon":           {before: []func(*corev1.Node){theirs}, cordon: true, stop: true},
		"theirs, uncordon":         {before: []func(*corev1.Node){theirs}, stop: true},
		"ours, CA deletes":         {before: []func(*corev1.Node){ours, tainted(backend.TaintToBeDeleted)}, stop: true},
		"ours, CA may delete":      {before: []func(*corev1.Node){ours, tainted(backend.TaintDeletionCandidate)}, stop: true},
		"ours, a taint of another": {before: []func(*corev1.Node){ours, tainted("team")}, changes: true},
	} {
		t.Run(name, func(t *testing.T) {
			node := &corev1.Node{}
			for _, do := range c.before {
				do(node)
			}
			require.Equal(t, c.changes, backend.SetCordon(node, c.cordon))
			require.Equal(t, c.stop, node.Spec.Unschedulable)
		})
	}
}
