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

// CA removes an idle node after its unneeded time, and releases it once.
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

// A removal takes long. The target size decreases immediately and only once, even though CA calls the server again
// and again.
func TestS17SlowRemovalReducesTheTargetOnce(t *testing.T) {
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
	require.Equal(t, "burst +1", asked[0], "a node that is being removed serves no pod: %v", asked)
	require.Equal(t, map[string]int{"burst": 1}, w.targets())
}

// Twelve nodes are idle at the same time. Each is released once, and each call releases several.
func TestS18IdleNodesAreReleasedOnceEach(t *testing.T) {
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

// CA drains nodes with little use, and their pods move to the remaining nodes.
func TestPodsOfALittleUsedNodeMoveToOtherNodes(t *testing.T) {
	w := newWorld(t, "- id: burst", offers(offer("milan", "north", 4, 1)))
	w.pods("web", 2)
	require.Equal(t, []string{"burst +2"}, w.loops(2))
	w.finish("web")
	w.pods("little", 4, small)
	w.pace = time.Minute
	require.Equal(t, []string{"burst releases 1"}, w.loops(20))
	require.Equal(t, map[string]int{"burst": 1}, w.targets())
}

// CA restarts while a node is being removed. It does not count this node's capacity for a new pod, and does not
// release the node a second time.
func TestS20RestartDuringARemovalReleasesOnce(t *testing.T) {
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

// CA ends. Its last call, Cleanup, changes nothing.
func TestS37CleanupChangesNothing(t *testing.T) {
	w := newWorld(t, "- id: burst", offers(offer("milan", "north", 4, 1)))
	w.pods("web", 2)
	require.Equal(t, []string{"burst +2"}, w.loops(2))
	w.ca.ExitCleanUp()
	require.Empty(t, w.mutations())
	require.Equal(t, map[string]int{"burst": 2}, w.targets())
}

// CA does not compare the prices of running nodes. Pods stay on the expensive provider while their node is in use,
// even when the cheaper provider has free capacity again. After a person has drained the node, the pods get a node of
// the cheaper provider, and CA releases the drained node.
func TestPodsLeaveAnExpensiveProviderOnlyByADrain(t *testing.T) {
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

// drain does the same as `kubectl drain`: it cordons the Node, and the Deployment of the Node's pods creates them
// again.
func (w *world) drain(n *corev1.Node) {
	n.Spec.Unschedulable = true
	n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeUnschedulable,
		Effect: corev1.TaintEffectNoSchedule})
	_, err := w.kube.CoreV1().Nodes().Update(w.ctx, n, metav1.UpdateOptions{})
	require.NoError(w.t, err)
	w.clear(n.Name)
}
