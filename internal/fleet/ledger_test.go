package fleet_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
)

// ledger returns a configured group. Its recovery has found no objects.
func ledger(t *testing.T) *fleet.Ledger {
	t.Helper()
	l := fleet.NewLedger("standard", t0.Add(-time.Minute))
	l.Epoch = "x"
	l.Step(fleet.GroupInput{Result: &fleet.Result{ID: 1, Outcome: fleet.OutcomeDone}}, t0)
	require.NoError(t, l.Operate(fleet.Configure, fleet.Request{Spec: spec()}, t0))
	return l
}

// booked returns the name of the instance that is booked at t0 with the number seq.
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

func TestReleaseReducesTheTargetOnce(t *testing.T) {
	l := ledger(t)
	require.NoError(t, operate(l, fleet.Grow, 2))
	for range 3 {
		require.NoError(t, operate(l, fleet.Release, 0, booked(1), booked(99)))
		require.Equal(t, 1, l.Target())
	}
	for _, name := range []string{"standard-big-x-1", "standard-", "standard", "standard-x", "lca-standard-x-1-1",
		"gpu-x-1"} {
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

// The test compares random operations, and random but mostly successful walks through the table, with a model. The
// target size equals a separate counter and never leaves its bounds (invariants I1 and I4).
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
			e.Driver = fleet.DriverRef{} // the walk takes the place of the driver
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

// walk applies one event to an instance. It returns 1 if the event removes the instance from the target size, and 0
// otherwise.
func walk(t *testing.T, rng *rand.Rand, e *fleet.Entry, visits map[fleet.Phase]int) int {
	kind := fleet.EventKinds[rng.IntN(len(fleet.EventKinds))]
	if rng.IntN(8) > 0 {
		kind = fleet.Done
	}
	if kind == fleet.Deleted && !e.Leaving {
		return 0 // the group applies this event only to deleted instances
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

// Instances with equal specs share one spec, even when the recovery has found a copy for each instance.
func TestInstancesShareTheirSpec(t *testing.T) {
	l, _ := recoveredLedger(t, 3, t0)
	for _, e := range l.Entries {
		require.Same(t, l.Entries[0].Spec, e.Spec)
		require.Same(t, l.Specs[e.SpecHash], e.Spec)
	}
}

// A group runs at most fifty scale-outs without a provider. It starts more when half of these scale-outs have
// chosen a provider. Instances that wait longer than their budget fail.
func TestBurstIsStartedInBatches(t *testing.T) {
	l := ledger(t)
	l.Spec.Max = 200
	require.NoError(t, operate(l, fleet.Grow, 120))
	started := func() (n int) {
		for _, e := range l.Entries {
			if e.Driver.Kind == fleet.ScaleOut {
				n++
			}
		}
		return n
	}
	l.Step(fleet.GroupInput{}, t0)
	require.Equal(t, 50, started())
	for n, row := range l.Snapshot(t0).Instances {
		require.Equal(t, n < 50, row.Phase == fleet.Discovering, "it is shown to look for a provider once it is started")
	}
	for n := range 25 {
		require.Equal(t, 50, started(), "%d have named their provider", n)
		e := l.Entries[n]
		l.Step(fleet.GroupInput{Views: []fleet.View{{Instance: e.Name, Generation: e.Driver.Generation, Sequence: 2,
			Phase: fleet.Peering, Attempt: 1, Offer: &fleet.Offer{Provider: "milan"}}}}, t0)
	}
	require.Equal(t, 75, started())
	late := t0.Add(10 * time.Minute)
	require.Equal(t, 120, l.Target())
	l.Step(fleet.GroupInput{}, late.Add(-1))
	require.Equal(t, fleet.Pending, l.Entries[119].Phase)
	l.Step(fleet.GroupInput{}, late)
	require.Equal(t, fleet.Failed, l.Entries[119].Phase)
	require.Equal(t, fleet.CodeTimeout, l.Entries[119].Failure.Code)
	require.Equal(t, fleet.Pending, l.Entries[74].Phase, "its driver ends it")
	require.Equal(t, 120, l.Target(), "failed ones count")
}

// An instance in creation reserves its highest possible price. An instance that has failed, or that already causes
// costs, reserves nothing.
func TestInstanceInCreationReservesItsHighestPrice(t *testing.T) {
	l := ledger(t)
	require.NoError(t, l.Operate(fleet.Grow, fleet.Request{Delta: 4, PriceCap: 2,
		Operation: fleet.Operation{ID: "1", GiveUpAt: t0}}, t0))
	l.Step(fleet.GroupInput{}, t0)
	require.InDelta(t, 8, l.Snapshot(t0).Cost.Reserved.Float(), 0)
	for n, phase := range []fleet.Phase{fleet.Failed, fleet.Peering, fleet.Ready} {
		e := l.Entries[n]
		l.Step(fleet.GroupInput{Views: []fleet.View{{Instance: e.Name, Generation: e.Driver.Generation, Sequence: 2,
			Phase: phase, Attempt: 1, Offer: &fleet.Offer{Provider: "milan", Hourly: 1}}}}, t0)
	}
	require.InDelta(t, 4, l.Snapshot(t0).Cost.Reserved.Float(), 0)
	limit := 5.0
	l.Spec.Max, l.Spec.Spending = 9, &money.Spending{Hourly: money.SpendingLimit{Hard: &limit}}
	err := l.Operate(fleet.Grow, fleet.Request{Delta: 1, PriceCap: 0.5,
		Operation: fleet.Operation{ID: "2", GiveUpAt: t0}}, t0)
	require.True(t, fleet.IsRefused(err, fleet.RefusedSpending), "%v", err)
}

// The group remembers the names of released instances for one hour, and at most the last 2,000 names.
func TestReleasedNamesAreRemembered(t *testing.T) {
	l := ledger(t)
	gone := func(n int) []fleet.ReleasedInstance {
		all := make([]fleet.ReleasedInstance, n)
		for i := range all {
			all[i] = fleet.ReleasedInstance{Name: booked(i), At: t0}
		}
		return all
	}
	l.Released = gone(2000)
	l.Step(fleet.GroupInput{}, t0.Add(time.Hour))
	require.Len(t, l.Released, 2000)
	l.Step(fleet.GroupInput{}, t0.Add(time.Hour+1))
	require.Empty(t, l.Released)
	l.Released = gone(2003)
	l.Step(fleet.GroupInput{}, t0)
	require.Len(t, l.Released, 2000)
}

// Attempts that a driver has left are undone in their order, and each once.
func TestLeftAttemptsAreUndoneOnce(t *testing.T) {
	l := ledger(t)
	require.NoError(t, operate(l, fleet.Grow, 1))
	l.Step(fleet.GroupInput{}, t0)
	e := l.Entries[0]
	undone := func(left ...int) (got []int) {
		var all []fleet.Attempt
		for _, n := range left {
			all = append(all, fleet.Attempt{Group: "standard", Instance: e.Name, Number: n})
		}
		l.Step(fleet.GroupInput{Views: []fleet.View{{Instance: e.Name, Generation: e.Driver.Generation,
			Sequence: e.Driver.Sequence + 1, Phase: fleet.Peering, Attempt: 9, Abandoned: all}}}, t0)
		for _, c := range l.Commands.Open {
			if c.Kind == fleet.CommandUndo {
				got = append(got, c.Attempt.Number)
			}
		}
		l.Commands.Drop(func(c fleet.Command) bool { return c.Kind == fleet.CommandUndo })
		return got
	}
	require.Equal(t, []int{1}, undone(1))
	require.Equal(t, []int{2, 3}, undone(1, 2, 3))
	require.Equal(t, []int{5, 4}, undone(5, 4, 3), "whatever their order")
	require.Empty(t, undone(5, 4, 0))
}

// Waiting scale-outs normally start in large batches. The last scale-outs of a burst start as soon as the limit
// allows all these scale-outs.
func TestLastInstancesOfABurstStart(t *testing.T) {
	l := ledger(t)
	l.Spec.Max = 200
	require.NoError(t, operate(l, fleet.Grow, 52))
	l.Step(fleet.GroupInput{}, t0)
	for n := range 2 {
		require.Empty(t, l.Entries[51].Driver.Kind)
		e := l.Entries[n]
		l.Step(fleet.GroupInput{Views: []fleet.View{{Instance: e.Name, Generation: e.Driver.Generation, Sequence: 2,
			Phase: fleet.Peering, Attempt: 1, Offer: &fleet.Offer{Provider: "milan"}}}}, t0)
	}
	require.Equal(t, fleet.ScaleOut, l.Entries[51].Driver.Kind)

	for _, e := range l.Entries { // one inspection covers a hundred silent instances
		e.Driver.Start = 0
	}
	require.NoError(t, operate(l, fleet.Grow, 60))
	for _, e := range l.Entries {
		e.Driver = fleet.DriverRef{Kind: fleet.ScaleOut, Generation: fleet.Generation{Epoch: "x", Count: 1}, LastSeen: t0}
	}
	l.Step(fleet.GroupInput{}, t0.Add(2*time.Minute))
	last := l.Commands.Open[len(l.Commands.Open)-1]
	require.Equal(t, fleet.CommandDescribe, last.Kind)
	require.Len(t, last.Instances, 100)
}

// A driver starts with the data of its group. It gets no data if the group does not know its instance or has started
// a newer driver.
func TestDriverStartsWithItsGroupsData(t *testing.T) {
	l := ledger(t)
	require.NoError(t, operate(l, fleet.Grow, 3))
	l.Step(fleet.GroupInput{}, t0)
	e := l.Entries[2]
	for n, phase := range []fleet.Phase{fleet.Failed, fleet.Ready, fleet.Peering} {
		l.Step(fleet.GroupInput{Views: []fleet.View{{Instance: l.Entries[n].Name, Generation: l.Entries[n].Driver.Generation,
			Sequence: 2, Phase: phase, Attempt: 1, Offer: &fleet.Offer{Provider: "milan"}, End: map[bool]fleet.End{
				true: fleet.EndFinal}[phase != fleet.Peering]}}}, t0)
	}
	cmd := fleet.Command{Instance: e.Name, Driver: fleet.ScaleOut, Generation: e.Driver.Generation}
	require.Equal(t, map[string]int{"milan": 1}, l.DriverInput(cmd).Taken, "neither itself nor what has failed")
	cmd.Driver = fleet.ScaleIn
	require.Nil(t, l.DriverInput(cmd).Taken)
	cmd.Generation.Count++
	require.Nil(t, l.DriverInput(cmd))
	require.Nil(t, l.DriverInput(fleet.Command{Instance: "standard-x-9"}))
}

// The newest complete attempt represents the instance. If no attempt is complete, the newest attempt represents it.
// The order in the list has no influence.
func TestNewestCompleteAttemptRepresentsItsInstance(t *testing.T) {
	attempt := func(n int, whole bool) fleet.Found {
		return fleet.Found{Attempt: fleet.Attempt{Group: "a", Instance: "a-t0-1", Number: n,
			Provider: fleet.Provider{ID: "milan"}},
			Booking: &fleet.Booking{Spec: fleet.InstanceSpec{ID: "a"}, BookedAt: t0},
			Slice:   true, Virtual: true, Node: true, Marked: whole, Stamped: whole, Ready: whole}
	}
	for want, found := range map[int]fleet.Founds{
		3: {attempt(1, false), attempt(3, true), attempt(2, true)},
		4: {attempt(4, false), attempt(3, false), attempt(2, false)},
		1: {attempt(1, true), attempt(2, false)},
	} {
		for range len(found) {
			found = append(found[1:], found[0])
			l := fleet.NewLedger("a", t0.Add(-time.Minute))
			l.Step(fleet.GroupInput{Result: &fleet.Result{ID: 1, Outcome: fleet.OutcomeDone, Found: found}}, t0)
			require.Len(t, l.Entries, 1)
			e := l.Entries[0]
			require.Equal(t, want, e.Attempt)
			require.Equal(t, want != 4, e.Phase == fleet.Ready)
			require.Equal(t, want != 4, e.Row().Registered)
			require.Equal(t, 12*time.Minute, e.Spec.Budgets.Total.Duration, "with what it does not say")
			undone := 0
			for _, c := range l.Commands.Open {
				if c.Kind == fleet.CommandUndo {
					undone++
				}
			}
			require.Equal(t, len(found)-1, undone)
		}
	}
}

// A group that starts two epochs within one second names the later epoch after the next second. It drops specs that
// no instance uses.
func TestEpochsAreNotReused(t *testing.T) {
	l := fleet.NewLedger("standard", t0)
	l.Step(fleet.GroupInput{Result: &fleet.Result{ID: 1, Outcome: fleet.OutcomeDone}}, t0.Add(time.Second))
	require.NoError(t, l.Operate(fleet.Configure, fleet.Request{Spec: spec()}, t0.Add(time.Second)))
	require.Equal(t, 2*time.Minute, l.Spec.Budgets.Join.Duration)
	require.Equal(t, fleet.DefaultCurrency, l.Snapshot(t0).Cost.Currency)
	l.Epoch = fleet.NewEpoch(t0.Add(time.Hour)) // as if a clock had been ahead
	_ = l.Operate(fleet.Pause, fleet.Request{Seen: fleet.Position{Epoch: l.Epoch, Revision: 1 << 40}}, t0.Add(time.Second))
	require.Equal(t, fleet.NewEpoch(t0.Add(time.Hour+time.Second)), l.Epoch)

	l = ledger(t)
	require.NoError(t, operate(l, fleet.Grow, 1))
	require.Len(t, l.Specs, 1)
	l.Entries[0].Phase = fleet.Released
	l.Step(fleet.GroupInput{}, t0)
	require.Empty(t, l.Specs)

	paused := fleet.Request{Operation: fleet.Operation{ID: "p", GiveUpAt: t0}, Paused: true}
	require.NoError(t, l.Operate(fleet.Pause, paused, t0))
	require.True(t, fleet.IsRefused(operate(l, fleet.Grow, 1), fleet.RefusedMax))
}
