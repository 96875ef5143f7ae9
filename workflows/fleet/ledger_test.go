package fleet_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// ledger is a configured group that found nothing at its start.
func ledger(t *testing.T) *fleet.Ledger {
	t.Helper()
	l := fleet.NewLedger("standard", t0.Add(-time.Minute))
	l.Epoch = "x"
	l.Step(fleet.GroupInput{Result: &fleet.Result{ID: 1, Outcome: fleet.OutcomeDone}}, t0)
	require.NoError(t, l.Operate(fleet.Configure, fleet.Request{Spec: spec()}, t0))
	return l
}

// booked is the name of that number, booked at t0.
func booked(seq int) string { return fleet.InstanceName("standard", fleet.NewEpoch(t0), seq) }

var operations int

func operate(l *fleet.Ledger, verb fleet.Verb, delta int, names ...string) error {
	operations++
	op := fleet.Operation{ID: fmt.Sprint(operations), GiveUpAt: t0.Add(time.Second)}
	return l.Operate(verb, fleet.Request{Operation: op, Delta: delta, Names: names}, t0)
}

func TestGrowBooksUniqueInstancesUpToMax(t *testing.T) {
	l := ledger(t)
	require.NoError(t, operate(l, fleet.Grow, 3))
	require.EqualError(t, operate(l, fleet.Grow, 2), "group standard: target size 3 + 2 is over max 4")
	require.Equal(t, 3, l.Target(), "a refused operation changes nothing")
	for _, delta := range []int{0, -1, math.MinInt} {
		require.True(t, fleet.IsRefused(operate(l, fleet.Grow, delta), fleet.RefusedInvalid))
	}
	require.True(t, fleet.IsRefused(operate(l, fleet.Grow, math.MaxInt), fleet.RefusedMax))
	s := l.Snapshot(t0)
	require.Equal(t, []string{booked(1), booked(2), booked(3)}, []string{s.Instances[0].Name,
		s.Instances[1].Name, s.Instances[2].Name})
	require.Equal(t, "liqo://standard/"+booked(1), s.Instances[0].ID("standard"))
}

func TestReleaseGivesAUnitBackOnce(t *testing.T) {
	l := ledger(t)
	require.NoError(t, operate(l, fleet.Grow, 2))
	for range 3 {
		require.NoError(t, operate(l, fleet.Release, 0, booked(1), booked(99)))
		require.Equal(t, 1, l.Target())
	}
	for _, name := range []string{"standard-big-x-1", "standard-", "standard", "standard-x", "standard-x-1-1", "gpu-x-1"} {
		require.True(t, fleet.IsRefused(operate(l, fleet.Release, 0, booked(2), name), fleet.RefusedInvalid), name)
	}
	require.Equal(t, 1, l.Target(), "all or nothing")
}

func TestOperationsRunOnceAndNotLate(t *testing.T) {
	l := ledger(t)
	grow := func(id string, at time.Time) error {
		op := fleet.Operation{ID: id, GiveUpAt: t0.Add(time.Second)}
		return l.Operate(fleet.Grow, fleet.Request{Operation: op, Delta: 1}, at)
	}
	require.NoError(t, grow("a", t0))
	require.NoError(t, grow("a", t0.Add(time.Hour)), "the same operation gets its first result, however late")
	require.Equal(t, 1, l.Target())
	require.True(t, fleet.IsRefused(grow("b", t0.Add(2*time.Second)), fleet.RefusedExpired),
		"a lost call must not come back as a ghost")
	for range 300 {
		require.NoError(t, operate(l, fleet.Shrink, 1))
		require.NoError(t, operate(l, fleet.Grow, 1))
	}
	require.Len(t, l.Ops.IDs, 256)
	require.False(t, l.Ops.Has("a"))
}

// Random operations, and walks through the table that mostly go on, against a model: the target is what a counter would
// say, and never leaves its bounds (I1, I4).
func TestLedgerAgainstModel(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	l := ledger(t)
	visits, seen, model := map[fleet.Phase]int{}, map[string]bool{}, 0
	for n := range 20000 {
		switch delta := 1 + rng.IntN(3); rng.IntN(12) {
		case 0, 1:
			if err := operate(l, fleet.Grow, delta); err == nil {
				model += delta
			} else {
				require.Greater(t, model+delta, 4)
			}
		case 2:
			can := 0
			for _, e := range l.Entries {
				if e.Counts() && e.Phase != fleet.Ready && !e.Registered {
					can++
				}
			}
			if err := operate(l, fleet.Shrink, delta); err == nil {
				model -= min(delta, can)
			} else {
				require.Zero(t, can)
			}
		case 3:
			if len(l.Entries) > 0 {
				e := l.Entries[rng.IntN(len(l.Entries))]
				if e.Counts() {
					model--
				}
				require.NoError(t, operate(l, fleet.Release, 0, e.Name))
			}
		default:
			for _, e := range l.Entries {
				model -= walk(t, rng, e, visits)
			}
		}
		for _, v := range l.Snapshot(t0).Instances {
			seen[v.Name] = true
		}
		l.Step(fleet.GroupInput{}, t0)
		for _, e := range l.Entries {
			e.Driver = fleet.DriverRef{} // the walk drives
		}
		l.Commands.Open = nil
		require.Equal(t, model, l.Target(), "after %d operations", n)
		require.True(t, 0 <= model && model <= 4)
		requireSnapshot(t, l)
	}
	require.Equal(t, l.NextSeq, len(seen), "an id was used twice or got lost")
	for _, row := range fleet.Machine[2:] {
		require.Greater(t, visits[row.Phase], 100, "%s was hardly seen: %v", row.Phase, visits)
	}
}

// walk applies one event to an instance, and returns 1 when it stopped counting by that.
func walk(t *testing.T, rng *rand.Rand, e *fleet.Entry, visits map[fleet.Phase]int) int {
	kind := fleet.EventKinds[rng.IntN(len(fleet.EventKinds))]
	if rng.IntN(8) > 0 {
		kind = fleet.Done
	}
	if kind == fleet.Deleted && !e.Leaving {
		return 0 // the group applies it only to what is leaving
	}
	was, counted := e.Phase, e.Counts()
	_, _ = e.Apply(fleet.Event{Kind: kind, Step: was.Row().Step, Attempt: e.Attempt, Offer: &fleet.Offer{Provider: "p"}},
		t0)
	if e.Phase != was {
		visits[e.Phase]++
	}
	require.True(t, was != fleet.Ready || e.Phase == fleet.Ready || kind == fleet.Lost || kind == fleet.Deleted,
		"Ready left by %s", kind)
	require.True(t, was != fleet.Failed || e.Phase == fleet.Failed || kind == fleet.Expired || kind == fleet.Deleted,
		"Failed left by %s", kind)
	require.False(t, !counted && e.Counts(), "%s made an instance count", kind)
	if counted && !e.Counts() {
		return 1
	}
	return 0
}

func requireSnapshot(t *testing.T, l *fleet.Ledger) {
	t.Helper()
	counting, s := 0, l.Snapshot(t0)
	for _, v := range s.Instances {
		if v.Counts {
			counting++
		}
		require.Equal(t, v.Counts, v.State != fleet.StateDeleting, "%+v", v)
	}
	require.Equal(t, s.Target, counting)
}

// What a server has learnt by changes is what it would have read as a whole.
func TestChangesAddUpToTheSnapshot(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	l := ledger(t)
	seen := l.Snapshot(t0)
	for range 3000 {
		switch rng.IntN(4) {
		case 0:
			_ = operate(l, fleet.Grow, 1+rng.IntN(2))
		case 1:
			_ = operate(l, fleet.Shrink, 1)
		case 2:
			for _, e := range slices.Clone(l.Entries) {
				v := fleet.View{Instance: e.Name, Generation: e.Driver.Generation, Sequence: e.Driver.Sequence + 1,
					Phase: fleet.Ready, Attempt: 1, End: fleet.EndFinal}
				if e.Leaving {
					v.Phase = fleet.Released
				}
				l.Step(fleet.GroupInput{Views: []fleet.View{v}}, t0)
			}
		case 3:
			if len(l.Entries) > 0 {
				_ = operate(l, fleet.Release, 0, l.Entries[rng.IntN(len(l.Entries))].Name)
			}
		}
		l.Step(fleet.GroupInput{}, t0)
		l.Commands.Open = nil
		if rng.IntN(3) > 0 {
			continue
		}
		next, ok := l.Since(seen.Position(), t0).Apply(seen)
		require.True(t, ok)
		want, err := json.Marshal(l.Snapshot(t0))
		require.NoError(t, err)
		got, err := json.Marshal(next)
		require.NoError(t, err)
		require.JSONEq(t, string(want), string(got))
		seen = next
	}
	require.Greater(t, l.NextSeq, 100)
}
