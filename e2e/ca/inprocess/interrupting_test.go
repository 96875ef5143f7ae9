//go:build externalgrpc

package inprocess

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/ca"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// The gRPC server is replaced right after it has acknowledged an increase. The instances stay the same, and CA requests
// none twice.
func TestS6S36ServerReplacedInAScaleOut(t *testing.T) {
	const groups = "- {id: burst, per: provider}"
	w := newWorld(t, groups, offers(offer("milan", "north", 4, 1)))
	w.hanging["burst-milan"] = true
	w.pods("web", 2)
	require.Equal(t, []string{"burst-milan +2"}, w.loops(1))
	before := w.told
	w.stop()
	w.fails = true
	require.Empty(t, w.loops(2), "no server answers")
	w.listen(w.parse(groups), w.address)
	testkit.Until(t, patience, "CA reaches the new one", func() error { // gRPC pauses between its tries
		require.Empty(t, w.loops(1))
		refreshes := w.proxy.Calls(func(c ca.Call) bool { return c.Method == ca.Refresh })
		if last := refreshes[len(refreshes)-1]; !last.OK() {
			return errors.New(last.Error)
		}
		return nil
	})
	require.Empty(t, w.loops(5))
	require.Equal(t, map[string]int{"burst-milan": 2}, w.targets())
	failed := w.proxy.Calls(func(c ca.Call) bool { return c.Seq > before && c.Failed() })
	require.NotEmpty(t, failed)
	require.False(t, slices.ContainsFunc(failed, func(c ca.Call) bool { return c.Method != ca.Refresh }), "%v", failed)
}

// While Temporal is unreachable, each loop of CA fails at its start and changes nothing. Afterwards CA continues.
func TestS7S34LoopsFailWhileTemporalIsAway(t *testing.T) {
	w := newWorld(t, "- id: burst", offers(offer("milan", "north", 4, 1)))
	w.pods("web", 1)
	require.Equal(t, []string{"burst +1"}, w.loops(2))
	w.groups.set(func(g *groups) { g.down = true })
	w.fails = true
	w.pods("more", 1)
	require.Empty(t, w.loops(3))
	for _, c := range w.proxy.Calls(ca.Call.Failed) {
		require.Equal(t, ca.Refresh, c.Method)
		require.Equal(t, "Unavailable", c.Code)
	}
	w.groups.set(func(g *groups) { g.down = false })
	require.Equal(t, []string{"burst +1"}, w.loops(3))
	require.Zero(t, w.pending())
}

// A person deletes a Node, and the Node is registered again with its id. CA 1.33 waits for this Node, and neither
// requests nor deletes a node.
func TestS22DeletedNodeComesBack(t *testing.T) {
	w := newWorld(t, "- id: burst", offers(offer("milan", "north", 4, 1)))
	w.pods("web", 1)
	require.Equal(t, []string{"burst +1"}, w.loops(2))
	w.pass(time.Hour)
	require.Empty(t, w.loops(2))
	gone := w.listNodes()[0]
	require.NotEmpty(t, gone.Spec.ProviderID)
	w.removeNode(gone.Name)
	require.Empty(t, w.loops(3))
	w.addNode(newNode(gone.Name, w.now(), gone.Labels, gone.Status.Capacity))
	require.Empty(t, w.loops(1), "before it is stamped")
	back, err := w.kube.CoreV1().Nodes().Get(w.ctx, gone.Name, metav1.GetOptions{})
	require.NoError(t, err)
	back.Spec = gone.Spec
	_, err = w.kube.CoreV1().Nodes().Update(w.ctx, back, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Empty(t, w.loops(20))
	require.Zero(t, w.pending())
}

// CA scales a large cluster with 500 machines, 20 groups and 50 virtual nodes.
func TestS33LargeClusterScales(t *testing.T) {
	groups := ""
	for _, id := range "abcdefghijklmnopqrst" {
		groups += "- {id: group-" + string(id) + ", max: 100}\n"
	}
	w := newWorld(t, groups, offers(offer("milan", "north", 100, 1)))
	w.machines(499)
	w.pods("web", 50)
	w.loops(2)
	require.Zero(t, w.pending())
	since, began := w.proxy.Last(), time.Now()
	require.Empty(t, w.loops(1))
	took := time.Since(began)
	calls := w.proxy.Calls(func(c ca.Call) bool { return c.Seq > since && c.Method == "NodeGroupForNode" })
	require.NotEmpty(t, calls)
	slices.SortFunc(calls, func(a, b ca.Call) int { return int(a.Duration - b.Duration) })
	t.Logf("a loop took %s (wanted: 3s), 99 of 100 of its %d NodeGroupForNode less than %s (wanted: 5ms)", took,
		len(calls), calls[len(calls)*99/100].Duration)
}
