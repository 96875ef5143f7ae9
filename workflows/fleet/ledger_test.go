package fleet_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

func ledger(t *testing.T) *fleet.Ledger {
	t.Helper()
	l := &fleet.Ledger{Epoch: "x"}
	require.NoError(t, l.Configure(spec()))
	return l
}

func TestGrowBooksUniqueInstancesUpToMax(t *testing.T) {
	l := ledger(t)
	require.NoError(t, l.Grow(3, t0))
	require.Equal(t, 3, l.Target())
	err := l.Grow(2, t0)
	require.True(t, fleet.IsRefused(err, fleet.RefusedMax), "%v", err)
	require.EqualError(t, err, "group standard: target size 3 + 2 is over max 4")
	require.Equal(t, 3, l.Target(), "a refused operation changes nothing")
	for _, delta := range []int{0, -1, math.MinInt} {
		require.True(t, fleet.IsRefused(l.Grow(delta, t0), fleet.RefusedInvalid))
	}
	require.True(t, fleet.IsRefused(l.Grow(math.MaxInt, t0), fleet.RefusedMax))
	s := l.Snapshot(t0)
	require.Equal(t, []string{"standard-x-1", "standard-x-2", "standard-x-3"}, []string{s.Instances[0].Name, s.Instances[1].Name, s.Instances[2].Name})
	require.Equal(t, "liqo://standard/standard-x-1", s.Instances[0].ID("standard"))
}

func TestShrinkCancelsYoungestUnregistered(t *testing.T) {
	l := ledger(t)
	require.NoError(t, l.Grow(4, t0))
	play(t, &l.Instances[0], t0, done, done, chooseA, done, done)
	play(t, &l.Instances[3], t0, done, done, chooseA, done, fleet.Event{Kind: fleet.Registered})
	require.NoError(t, l.Shrink(5), "a larger delta takes what there is (I4)")
	require.Equal(t, 2, l.Target())
	require.False(t, l.Instances[0].Leaving, "Ready")
	require.True(t, l.Instances[1].Leaving)
	require.True(t, l.Instances[2].Leaving)
	require.False(t, l.Instances[3].Leaving, "registered")
	require.True(t, fleet.IsRefused(l.Shrink(1), fleet.RefusedPrecondition))
	require.True(t, fleet.IsRefused(l.Shrink(0), fleet.RefusedInvalid))
}

func TestReleaseGivesAUnitBackOnce(t *testing.T) {
	l := ledger(t)
	require.NoError(t, l.Grow(2, t0))
	for range 3 {
		require.NoError(t, l.Release([]string{"standard-x-1", "standard-x-99"}))
		require.Equal(t, 1, l.Target())
	}
	require.True(t, fleet.IsRefused(l.Release([]string{"standard-x-2", "gpu-x-1"}), fleet.RefusedInvalid))
	require.Equal(t, 1, l.Target(), "all or nothing")
}

func TestNamesAreNeverReused(t *testing.T) {
	l := ledger(t)
	require.NoError(t, l.Grow(2, t0))
	require.NoError(t, l.Release([]string{"standard-x-1", "standard-x-2"}))
	play(t, &l.Instances[0], t0, leave)
	play(t, &l.Instances[1], t0, leave)
	l.Sweep(func(string) bool { return false })
	require.Empty(t, l.Instances)
	require.NoError(t, l.Grow(1, t0))
	require.Equal(t, "standard-x-3", l.Instances[0].Name)
}

func TestOperationsRunOnceAndNotLate(t *testing.T) {
	l := ledger(t)
	op := fleet.Operation{ID: "a", GiveUpAt: t0.Add(time.Second)}
	known, err := l.Admit(op, t0)
	require.NoError(t, err)
	require.False(t, known)
	l.Ops.Add(op.ID)
	known, err = l.Admit(op, t0.Add(time.Hour))
	require.NoError(t, err, "the same operation gets its first result, however late")
	require.True(t, known)
	_, err = l.Admit(fleet.Operation{ID: "b", GiveUpAt: t0}, t0.Add(time.Millisecond))
	require.True(t, fleet.IsRefused(err, fleet.RefusedExpired), "a lost call must not come back as a ghost")
	for i := range 300 {
		l.Ops.Add(fmt.Sprint(i))
	}
	require.Len(t, l.Ops.IDs, 256)
	require.True(t, l.Ops.Has("299"))
	require.False(t, l.Ops.Has("a"))
}

// Random operations against a model: the target is what a counter would say, and never leaves its bounds (I1, I4).
func TestLedgerAgainstModel(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	l := ledger(t)
	seen := map[string]bool{}
	model := 0
	for n := range 20000 {
		switch rng.IntN(5) {
		case 0, 1:
			delta := 1 + rng.IntN(3)
			if err := l.Grow(delta, t0); err == nil {
				model += delta
			} else {
				require.Greater(t, model+delta, 4)
			}
		case 2:
			delta, can := 1+rng.IntN(3), 0
			for _, i := range l.Instances {
				if i.Counts() && i.Phase != fleet.Ready && !i.Registered {
					can++
				}
			}
			if err := l.Shrink(delta); err == nil {
				model -= min(delta, can)
			} else {
				require.Zero(t, can)
			}
		case 3:
			if len(l.Instances) > 0 {
				i := &l.Instances[rng.IntN(len(l.Instances))]
				if i.Counts() {
					model--
				}
				require.NoError(t, l.Release([]string{i.Name}))
			}
		case 4:
			for x := range l.Instances {
				i := &l.Instances[x]
				kind := fleet.EventKinds[rng.IntN(len(fleet.EventKinds))]
				if kind == fleet.Leave && !i.Leaving {
					continue // the group applies it only to what is leaving
				}
				counted := i.Counts()
				_, _ = i.Apply(fleet.Event{Kind: kind, Step: i.Phase.Row().Step, Attempt: i.Attempt, Offer: &fleet.Offer{Provider: "p"}}, t0)
				if counted && !i.Counts() {
					model--
				}
				require.False(t, !counted && i.Counts(), "an instance began to count by an event")
			}
			l.Sweep(func(string) bool { return false })
		}
		require.Equal(t, model, l.Target(), "after %d operations", n)
		require.True(t, 0 <= model && model <= 4)
		s := l.Snapshot(t0)
		counting := 0
		for _, v := range s.Instances {
			seen[v.Name] = true
			if v.Counts {
				counting++
			}
			require.Equal(t, v.Counts, v.State != fleet.StateDeleting, "%+v", v)
		}
		require.Equal(t, s.Target, counting)
	}
	require.Equal(t, l.NextSeq, len(seen), "an id was used twice or got lost")
}

// A group's id may begin with another's: "standard-x" is not "standard".
func TestReleaseOfAGroupWithALongerIDIsRefused(t *testing.T) {
	l := ledger(t)
	for _, name := range []string{"standard-big-x-1", "standard-", "standard", "standard-x", "standard-x-1-1"} {
		require.True(t, fleet.IsRefused(l.Release([]string{name}), fleet.RefusedInvalid), name)
	}
	require.NoError(t, l.Release([]string{"standard-x-77"}), "one of ours that is gone")
}
