//go:build externalgrpc

package inprocess

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An idle node is removed after CA's unneeded time, once.
func TestS16AnIdleNodeIsReleasedOnce(t *testing.T) {
	w := newWorld(t, "- id: burst", offers(offer("milan", "north", 4, 1)))
	w.pods("web", 1)
	w.pods("stays", 1)
	require.Equal(t, []string{"burst +2"}, w.loops(2))
	w.finish("web")
	w.pace = time.Minute
	require.Equal(t, []string{"burst releases 1"}, w.loops(20))
	require.Equal(t, map[string]int{"burst": 1}, w.targets())
	require.Equal(t, 1, w.nodesOf("milan"))
}

// A removal that takes long reduces the target size immediately and once, for any number of calls by CA.
func TestS17ARemovalThatTakesLong(t *testing.T) {
	w := newWorld(t, "- id: burst", offers(offer("milan", "north", 4, 1)))
	w.pods("web", 1)
	require.Equal(t, []string{"burst +1"}, w.loops(2))
	w.finish("web")
	w.draining = true
	w.pace = time.Minute
	w.loops(12)
	require.Empty(t, w.targets())
	w.pods("more", 1)
	asked := w.loops(20)
	require.Equal(t, "burst +1", asked[0], "the node that goes serves no pod: %v", asked)
	require.Equal(t, map[string]int{"burst": 1}, w.targets())
}

// Twelve idle nodes at the same time, each released once, and several by each call.
func TestS18TenIdleNodes(t *testing.T) {
	w := newWorld(t, "- {id: burst, max: 20}", offers(offer("milan", "north", 20, 1)))
	w.pods("web", 12)
	require.Equal(t, []string{"burst +12"}, w.loops(2))
	w.finish("web")
	w.pace = time.Minute
	released := 0
	all := w.loops(20)
	for _, asked := range all {
		var n int
		_, err := fmt.Sscanf(asked, "burst releases %d", &n)
		require.NoError(t, err, asked)
		released += n
	}
	require.Equal(t, 12, released)
	require.Less(t, len(all), 12, "CA deletes them in batches")
	require.Empty(t, w.targets())
	require.Zero(t, w.nodesOf("milan"))
}

// Little-used nodes are drained by CA, and their pods find room on the remaining nodes.
func TestPodsOfALittleUsedNodeMove(t *testing.T) {
	w := newWorld(t, "- id: burst", offers(offer("milan", "north", 4, 1)))
	w.pods("web", 2)
	require.Equal(t, []string{"burst +2"}, w.loops(2))
	w.finish("web")
	w.pods("little", 4, small)
	w.pace = time.Minute
	require.Equal(t, []string{"burst releases 1"}, w.loops(20))
	require.Equal(t, map[string]int{"burst": 1}, w.targets())
}

// A CA that restarts while a node is being removed neither schedules pods onto it nor releases it twice.
func TestS20RestartedWhileANodeGoes(t *testing.T) {
	w := newWorld(t, "- id: burst", offers(offer("milan", "north", 4, 1)))
	w.pods("web", 1)
	require.Equal(t, []string{"burst +1"}, w.loops(2))
	w.finish("web")
	w.draining = true
	w.pace = time.Minute
	require.Contains(t, w.loops(12), "burst releases 1")
	w.start()
	w.pods("more", 1)
	require.Equal(t, []string{"burst +1"}, w.loops(3), "the node that goes has no room")
	require.Equal(t, map[string]int{"burst": 1}, w.targets())
}

// The end of CA changes nothing.
func TestS37CleanupChangesNothing(t *testing.T) {
	w := newWorld(t, "- id: burst", offers(offer("milan", "north", 4, 1)))
	w.pods("web", 2)
	require.Equal(t, []string{"burst +2"}, w.loops(2))
	w.ca.ExitCleanUp()
	require.Empty(t, w.mutations())
	require.Equal(t, map[string]int{"burst": 2}, w.targets())
}

// CA compares no prices: pods stay on the expensive provider to which they fell back, even when the cheaper one has
// room again, for as long as their node is in use. After a person has drained the node, the pods get a node of the
// cheaper provider, and CA releases the drained one.
func TestReturnFromADearProvider(t *testing.T) {
	for _, per := range []string{"any", "provider"} {
		t.Run(per, func(t *testing.T) {
			w := newWorld(t, "- {id: burst, per: "+per+"}", offers(offer("dear", "north", 4, 5)), byPrice)
			cheap, dear := "burst-cheap", "burst-dear"
			if per == "any" {
				cheap, dear = "burst", "burst"
			}
			w.pods("web", 1)
			require.Equal(t, []string{dear + " +1"}, w.loops(3))
			w.offers = append(w.offers, offer("cheap", "south", 4, 1))
			w.publish()
			w.pace = time.Minute
			require.Empty(t, w.loops(60))
			require.Equal(t, 1, w.nodesOf("dear"))

			for _, n := range w.listNodes() {
				if n.Labels[cluster] == "dear" {
					w.drain(n)
				}
			}
			require.Equal(t, []string{cheap + " +1", dear + " releases 1"}, w.loops(20))
			require.Equal(t, map[string]int{cheap: 1}, w.targets())
			require.Zero(t, w.nodesOf("dear"))
			require.Equal(t, 1, w.nodesOf("cheap"))
			require.Zero(t, w.pending())
		})
	}
}

// drain does the same as `kubectl drain`: the Node is cordoned, and its pods are made again by their Deployment.
func (w *world) drain(n *corev1.Node) {
	n.Spec.Unschedulable = true
	n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeUnschedulable,
		Effect: corev1.TaintEffectNoSchedule})
	_, err := w.kube.CoreV1().Nodes().Update(w.ctx, n, metav1.UpdateOptions{})
	require.NoError(w.t, err)
	w.clear(n.Name)
}
