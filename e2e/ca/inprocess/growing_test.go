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

// For one pending pod, CA requests one node, and the pod is bound to this node.
func TestS5OnePodRequestsOneNode(t *testing.T) {
	w := newWorld(t, "- id: burst", offers(offer("milan", "north", 4, 1)))
	w.pods("web", 1)
	require.Equal(t, []string{"burst +1"}, w.loops(6))
	require.Zero(t, w.pending())
	require.Equal(t, map[string]int{"burst": 1}, w.targets())
}

func TestS25ScaleFromZeroNeedsAToleration(t *testing.T) {
	w := newWorld(t, "- id: burst", offers(offer("milan", "north", 4, 1)))
	w.pods("local", 1, intolerant)
	require.Empty(t, w.loops(4))
	w.pods("web", 1)
	require.Equal(t, []string{"burst +1"}, w.loops(4))
}

// The max that CA receives is the size for which capacity is available. The pods that fit get nodes immediately, and
// the other pod gets a node when capacity becomes free. No call fails, so CA never backs off.
func TestPodsWithoutRoomWaitWithoutAFailure(t *testing.T) {
	for _, per := range []string{", per: any", ", per: provider"} {
		t.Run(per, func(t *testing.T) {
			w := newWorld(t, "- {id: burst"+per+"}", offers(offer("milan", "north", 2, 1)))
			group := "burst"
			if per == ", per: provider" {
				group = "burst-milan"
			}
			w.pods("web", 3)
			require.Equal(t, []string{group + " +2"}, w.loops(1), "immediately")
			require.Empty(t, w.loops(5))
			require.Equal(t, 1, w.pending())
			require.NotContains(t, w.status(), "Backoff")

			w.offers[0] = offer("milan", "north", 3, 1)
			w.publish()
			require.Equal(t, []string{group + " +1"}, w.loops(2))
			require.Zero(t, w.pending())
			require.NotContains(t, w.status(), "Backoff")
			require.Equal(t, map[string]int{group: 3}, w.targets())
		})
	}
}

// CA 1.33 restarts in the middle of a scale-out. It sees the instances in creation and requests none twice.
func TestS21RestartDuringAScaleOutRequestsNoNodeTwice(t *testing.T) {
	w := newWorld(t, "- id: burst", offers(offer("milan", "north", 9, 1)))
	w.hanging["burst"] = true
	w.pods("web", 5)
	require.Equal(t, []string{"burst +5"}, w.loops(1))
	w.start()
	require.Empty(t, w.loops(5))
	require.Equal(t, map[string]int{"burst": 5}, w.targets())
}

// A person sets a taint on one virtual node. CA uses this node as the template of its group, so the group does not grow
// until the taint is removed. The taint of a cordon has no such effect.
func TestATaintOnOneNodeStopsItsGroup(t *testing.T) {
	w := newWorld(t, "- id: burst", offers(offer("milan", "north", 9, 1)))
	w.pods("web", 1)
	require.Equal(t, []string{"burst +1"}, w.loops(3))
	w.pass(2 * time.Minute) // CA does not use a young Node as a template
	taint := func(taints ...corev1.Taint) {
		for _, n := range w.listNodes() {
			if n.Labels[cluster] == "milan" {
				n.Spec.Taints = append([]corev1.Taint{liqoTaint}, taints...)
				_, err := w.kube.CoreV1().Nodes().Update(w.ctx, n, metav1.UpdateOptions{})
				require.NoError(t, err)
			}
		}
	}
	taint(corev1.Taint{Key: "maintenance", Effect: corev1.TaintEffectNoSchedule})
	w.pods("more", 1)
	require.Empty(t, w.loops(6))
	taint(corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	require.Equal(t, []string{"burst +1"}, w.loops(3))
}

// A max below the target size neither adds nor removes a node.
func TestMaxBelowTheTargetSizeChangesNothing(t *testing.T) {
	w := newWorld(t, "- id: burst", offers(offer("milan", "north", 9, 1)))
	w.pods("web", 5)
	require.Equal(t, []string{"burst +5"}, w.loops(2))
	w.edit("- {id: burst, max: 2}")
	w.pods("more", 1)
	require.Empty(t, w.loops(5))
	require.Equal(t, map[string]int{"burst": 5}, w.targets())
}

// CA's own limits count virtual nodes together with all other nodes. In this test the machine has 1 CPU, and each
// virtual node has 2 CPUs.
func TestCoresTotalCountsVirtualNodes(t *testing.T) {
	for most, bought := range map[int64]int{4: 1, 5: 2} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			w := newWorld(t, "- id: burst", offers(offer("milan", "north", 9, 1)), coresTotal(most))
			w.pods("web", 2)
			w.loops(4)
			require.Equal(t, map[string]int{"burst": bought}, w.targets())
		})
	}
}

// A limit applies to all groups together. The max that CA receives for each group is low enough that no request is
// refused, even when CA splits a scale-out between groups.
func TestLimitsAllowASplitScaleOut(t *testing.T) {
	w := newWorld(t, `- {id: aaa, labels: {liqo-autoscaler.io/balance: web}}
- {id: bbb, labels: {liqo-autoscaler.io/balance: web}}
limits: {nodes: 4}`, offers(offer("milan", "north", 9, 1)))
	w.pods("web", 6)
	require.ElementsMatch(t, []string{"aaa +2", "bbb +2"}, w.loops(6))
	require.NotContains(t, w.status(), "Backoff")
	require.Equal(t, 2, w.pending())
}
