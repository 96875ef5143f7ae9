package chaos

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/test/simworld"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// The model must detect each broken promise, and must not report a promise that was kept.
func TestModelDetectsBrokenPromises(t *testing.T) {
	creating, running, leaving, failed := listed{counts: true}, listed{counts: true, running: true}, listed{},
		listed{counts: true, failed: true}
	as := func(name string, l listed) listed { l.name = name; return l }
	grow, shrink, remove := op{kind: "grow", delta: 1}, op{kind: "shrink", delta: 1}, op{kind: "delete",
		names: []string{"a"}}
	type step struct {
		op    *op  // the answer is OK, or lost
		ended bool // an operator has ended the group's workflow before
		lost  bool
		epoch string // empty: the first epoch
		list  []listed
		bad   string // empty: no violation
	}
	for name, steps := range map[string][]step{
		"comes without being asked":         {{list: []listed{as("a", creating)}, bad: "I4, I7"}},
		"is asked for and comes":            {{op: &grow, list: []listed{as("a", creating)}}},
		"is asked for and does not come":    {{op: &grow, bad: "I2, I7"}},
		"may have been asked for":           {{op: &grow, lost: true, list: []listed{as("a", creating)}}},
		"comes after all, once it is known": {{op: &grow, lost: true}, {list: []listed{as("a", creating)}, bad: "I4, I7"}},
		"is listed twice":                   {{op: &grow, list: []listed{as("a", creating), as("a", leaving)}, bad: "I2"}},
		"counts again": {{op: &grow, list: []listed{as("a", running)}},
			{op: &remove, list: []listed{as("a", running)}, bad: "I4"}},
		"comes back": {{op: &grow, list: []listed{as("a", running)}}, {op: &remove},
			{list: []listed{as("a", leaving)}, bad: "I2"}},
		"is given back": {{op: &grow, list: []listed{as("a", running)}},
			{op: &remove, list: []listed{as("a", leaving)}}, {}},
		"vanishes": {{op: &grow, list: []listed{as("a", failed)}}, {bad: "I2, I3"}},
		"loses its error": {{op: &grow, list: []listed{as("a", failed)}},
			{list: []listed{as("a", creating)}, bad: "I3"}},
		"leaves by itself": {{op: &grow, list: []listed{as("a", running)}},
			{list: []listed{as("a", leaving)}, bad: "I4"}},
		"is cancelled": {{op: &grow, list: []listed{as("a", creating)}}, {op: &shrink}},
		"is not cancelled": {{op: &grow, list: []listed{as("a", creating)}},
			{op: &shrink, list: []listed{as("a", creating)}, bad: "I4"}},
		"is away, and is taken back": {{op: &grow, list: []listed{as("a", creating)}}, {ended: true, epoch: "e1"},
			{epoch: "e1", list: []listed{as("a", creating)}}},
		"is taken back twice": {{op: &grow, list: []listed{as("a", creating)}}, {ended: true, epoch: "e1"},
			{epoch: "e1", list: []listed{as("a", failed)}}, {op: &remove, epoch: "e1"},
			{epoch: "e1", list: []listed{as("a", creating)}, bad: "I2"}},
		"is born again by itself": {{op: &grow, list: []listed{as("a", creating)}}, {epoch: "e1", bad: "anew"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(map[string]int{"red": 2}, io.Discard)
			m.see(listing{group: "red", epoch: "e0"}, 0, 0, true)
			for n, s := range steps {
				if s.ended {
					m.ending("red")
				}
				if s.op != nil {
					o := *s.op
					o.group, o.epoch = "red", "e0"
					m.did(o, !s.lost, time.Now().Add(time.Minute))
				}
				v := listing{group: "red", epoch: "e0", seq: int64(n + 1), list: s.list}
				if s.epoch != "" {
					v.epoch = s.epoch
				}
				for _, i := range s.list {
					if i.counts {
						v.target++
					}
				}
				m.see(v, 0, 0, true)
				if s.bad == "" {
					require.Empty(t, m.verdict())
				} else {
					require.NotEmpty(t, m.verdict())
					require.Contains(t, m.verdict()[0], s.bad)
				}
			}
		})
	}
	m := newModel(map[string]int{"red": 2}, io.Discard)
	m.see(listing{group: "red", epoch: "e0", seq: 5, target: 1}, 0, 0, true)
	m.see(listing{group: "red", epoch: "e0", seq: 4}, 1, 0, true)
	require.Len(t, m.verdict(), 2)
	require.Contains(t, m.verdict()[0], "I1")
	require.Contains(t, m.verdict()[1], "I6")
}

// Two growths have an unknown outcome. Either growth may have created the new instances.
func TestModelExplainsUnitsByLostCalls(t *testing.T) {
	for _, c := range []struct{ extra, left, lost int }{{2, 0, 2}, {1, 0, 2}, {3, 0, 1}, {4, 1, 1}, {0, 0, 3}} {
		g := &groupModel{}
		for _, o := range []op{{kind: "grow", delta: 1}, {kind: "shrink", delta: 1}, {kind: "grow", delta: 2}} {
			g.lost = append(g.lost, lost{op: o})
		}
		require.Equal(t, c.left, g.byLost(c.extra), c)
		require.Len(t, g.lost, c.lost, c)
		require.Contains(t, g.lost, lost{op: op{kind: "shrink", delta: 1}})
	}
}

// The guard must detect each forbidden change of a Ready node. It must report nothing for a node that CA has released.
func TestGuardDetectsForbiddenChanges(t *testing.T) {
	const instance, node = "std-t0-1", "lca-std-t0-1-1"
	change := func(f func(*corev1.Node)) func(*simworld.World, *guard) error {
		return func(w *simworld.World, _ *guard) error {
			return w.Edit(t.Context(), func(s *sim.State) error { f(s.Consumer.Nodes[node]); return nil })
		}
	}
	drain := change(func(n *corev1.Node) { n.Spec.Unschedulable = true })
	for name, c := range map[string]struct {
		happens func(*simworld.World, *guard) error
		bad     string // empty: no violation
	}{
		"nothing": {func(*simworld.World, *guard) error { return nil }, ""},
		"is gone": {func(w *simworld.World, _ *guard) error {
			return w.Edit(t.Context(), func(s *sim.State) error { delete(s.Consumer.Nodes, node); return nil })
		}, "is gone"},
		"is another":   {change(func(n *corev1.Node) { n.UID = "other" }), "was made anew"},
		"loses its id": {change(func(n *corev1.Node) { n.Spec.ProviderID = "" }), "has lost its id"},
		"is drained":   {drain, "is drained"},
		"loses a pod": {func(w *simworld.World, _ *guard) error { return w.RemovePod(t.Context(), node, "work") },
			"has lost pod work"},
		"is asked back": {func(w *simworld.World, g *guard) error { g.give(instance); return drain(w, g) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := simworld.New(t, t.TempDir(), sim.Delays{}, simworld.Provider{Name: "p1", Offer: "price: 1"})
			b := sim.New(w.World, sim.Options{})
			require.NoError(t, b.Establish(t.Context(), w.Provider("p1"), nil))
			_, err := b.Join(t.Context(), backend.NodeSpec{Shape: corev1.ResourceList{}, Attempt: fleet.Attempt{Group: "std",
				Instance: instance, Number: 1, Provider: w.Provider("p1")}}, nil)
			require.NoError(t, err)
			g, m := newGuard(), newModel(nil, io.Discard)
			g.watch(w.World, m)
			require.NoError(t, g.occupy(t.Context(), w.World, []string{instance}, false))
			require.NoError(t, c.happens(w, g))
			g.watch(w.World, m)
			if c.bad == "" {
				require.Empty(t, m.verdict())
			} else {
				require.Contains(t, strings.Join(m.verdict(), "\n"), c.bad)
			}
		})
	}
}

// The undo of an attempt, and the failure of a peering, are defects if the provider is healthy.
func TestGuardReportsUnexplainedUndo(t *testing.T) {
	g := newGuard()
	g.nodes["lca-std-t0-1-1"], g.nodes["lca-std-t0-2-1"] = guarded{instance: "std-t0-1"}, guarded{instance: "std-t0-2"}
	g.give("std-t0-2")
	o := &scenario{guard: g, sick: map[string]bool{"sick": true}, unknown: map[string]bool{"lca-std-t0-3-1": true}}
	const failed, done = enums.WORKFLOW_EXECUTION_STATUS_FAILED, enums.WORKFLOW_EXECUTION_STATUS_COMPLETED
	for _, c := range []struct {
		id, provider string
		status       enums.WorkflowExecutionStatus
		bad          bool
	}{
		{"undo/std-t0-1-1", "sick", done, true}, {"undo/std-t0-2-1", "sick", done, false},
		{"undo/std-t0-2-1", "well", done, true}, {"undo/std-t0-3-1", "well", done, false},
		{"undo/std-t0-4-1", "well", done, true}, {"undo/std-t0-4-1", "sick", done, false},
		{"peering/well", "well", failed, true}, {"peering/well", "well", done, false},
		{"peering/sick", "sick", failed, false},
	} {
		kind := workflows.TypeUndo
		if strings.HasPrefix(c.id, "peering/") {
			kind = workflows.TypePeering
		}
		require.Equal(t, c.bad, o.unjust(kind, c.id, c.provider, c.status) != "", "%s on %s", c.id, c.provider)
	}
}
