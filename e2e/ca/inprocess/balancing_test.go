//go:build externalgrpc

package inprocess

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	caconfig "k8s.io/autoscaler/cluster-autoscaler/config"
)

const balanced = `- {id: aaa, provider: milan, labels: {liqo-autoscaler.io/balance: web}}
- {id: bbb, provider: turin, labels: {liqo-autoscaler.io/balance: web}}`

// Two groups with the same value of the balancing label share each scale-out. They also do so when both have real
// nodes, whose labels differ more than the labels of the templates.
func TestS31SimilarGroupsBalance(t *testing.T) {
	w := newWorld(t, balanced, offers(offer("milan", "north", 9, 1), offer("turin", "south", 9, 1)))
	for round, name := range []string{"one", "two", "three"} {
		w.pods(name, 2)
		require.ElementsMatch(t, []string{"aaa +1", "bbb +1"}, w.loops(2), "round %d", round)
		w.pass(2 * time.Minute) // afterwards CA uses a real node as the template of its group
	}
	require.Equal(t, map[string]int{"aaa": 3, "bbb": 3}, w.targets())
	require.Zero(t, w.pending())
}

func TestS31GroupsOfAnotherValueDoNotBalance(t *testing.T) {
	w := newWorld(t, balanced+"\n- {id: ccc, provider: rome, labels: {liqo-autoscaler.io/balance: other}}",
		offers(offer("milan", "north", 9, 1), offer("turin", "south", 9, 1), offer("rome", "south", 9, 1)))
	w.pods("web", 6)
	w.loops(3)
	require.Contains(t, []map[string]int{{"aaa": 3, "bbb": 3}, {"ccc": 6}}, w.targets())
}

// CA's own comparison of groups needs a list of labels to ignore: the labels that differ between groups and
// providers. With this list, two groups share a scale-out if both have a real Node, or if none has one. If only one
// group has a real Node, they do not share it, because Liqo adds labels to a real Node that a template lacks. The
// shipped values need no such list, and these labels do not affect them.
func TestS31CAsOwnComparisonNeedsIgnoredLabels(t *testing.T) {
	for name, c := range map[string]struct {
		first int // pods before the two pods that CA distributes
		want  int // number of groups that share them
	}{
		"no node yet":       {0, 2},
		"one has a node":    {1, 1},
		"each has its node": {2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "- {id: aaa, provider: milan}\n- {id: bbb, provider: turin}",
				offers(offer("milan", "north", 9, 1), offer("turin", "south", 9, 1)), func(o *caconfig.AutoscalingOptions) {
					o.BalancingLabels = nil
					o.BalancingExtraIgnoredLabels = []string{cluster, "liqo-autoscaler.io/group"}
				})
			w.pods("first", c.first)
			require.Len(t, w.loops(2), c.first)
			w.pass(2 * time.Minute)
			w.pods("more", 2)
			require.Len(t, w.loops(2), c.want)
		})
	}
}
