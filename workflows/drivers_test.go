package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/driver"
)

// checked makes the group describe its silent drivers, and returns a status for each of these drivers to the group.
func checked(t *testing.T, l *fleet.Ledger, now time.Time, found func(instance string) fleet.DriverStatus) {
	t.Helper()
	l.Step(fleet.GroupInput{}, now)
	n := -1
	for i, c := range l.Commands.Open {
		if c.Kind == fleet.CommandDescribe {
			n = i
		}
	}
	require.GreaterOrEqual(t, n, 0, "the group does not check silent drivers")
	cmd := l.Commands.Open[n]
	r := fleet.Result{ID: cmd.ID, Outcome: fleet.OutcomeDone}
	for _, name := range cmd.Instances {
		s := found(name)
		s.Instance = name
		r.Drivers = append(r.Drivers, s)
	}
	l.Step(fleet.GroupInput{Result: &r}, now)
}

// driven returns a group of n instances. The scale-out of each instance has reported a provider and has been silent
// since.
func driven(t *testing.T, n int) (*fleet.Ledger, time.Time) {
	t.Helper()
	l, now := group(t, n)
	var views []fleet.View
	for _, e := range l.Entries {
		views = append(views, fleet.View{
			Instance: e.Name, Generation: e.Driver.Generation, Sequence: 2, Phase: fleet.Peering, Attempt: 1,
			Offer: &fleet.Offer{Name: "milan", Provider: "milan"},
		})
	}
	l.Step(fleet.GroupInput{Views: views}, now)
	settle(l, now)
	return l, now.Add(2*time.Minute + time.Second)
}

func kinds(l *fleet.Ledger) map[fleet.CommandKind]int {
	n := map[fleet.CommandKind]int{}
	for _, c := range l.Commands.Open {
		n[c.Kind]++
	}
	return n
}

// replacesNothing requires that the group only sends orders to its drivers.
func replacesNothing(t *testing.T, l *fleet.Ledger) {
	t.Helper()
	all := kinds(l)
	delete(all, fleet.CommandOrder)
	require.Empty(t, all)
}

// The group replaces a driver that closed without a last view, or whose workflow task fails repeatedly. It undoes the
// driver's attempt, and a new driver continues with the next attempt.
func TestFailedDriverIsReplaced(t *testing.T) {
	for name, status := range map[string]fleet.DriverStatus{
		"closed": {}, "cannot go on": {Running: true, Failing: true},
	} {
		t.Run(name, func(t *testing.T) {
			l, now := driven(t, 1)
			e := l.Entries[0]
			before := e.Driver.Generation
			checked(t, l, now, func(string) fleet.DriverStatus { return status })
			require.Equal(t, map[fleet.CommandKind]int{fleet.CommandStart: 1, fleet.CommandUndo: 1}, kinds(l))
			require.True(t, before.Before(e.Driver.Generation))
			require.Equal(t, 1, l.Target())
			for _, c := range l.Commands.Open {
				if c.Kind == fleet.CommandStart {
					in := l.DriverInput(c)
					require.Equal(t, 1, in.Instance.Attempt, "the next one is 2")
					require.Equal(t, fleet.Pending, in.Instance.Phase)
				}
			}
			late := fleet.View{Instance: e.Name, Generation: before, Sequence: 9, Phase: fleet.Ready, Attempt: 1,
				End: fleet.EndFinal}
			l.Step(fleet.GroupInput{Views: []fleet.View{late}}, now)
			require.NotEqual(t, fleet.Ready, e.Phase, "the old one has no word any more")
		})
	}
}

// The group does not replace a running driver, however long the driver is silent. When the driver's node is complete,
// the objects that exist make the instance Ready.
func TestSilentDriverIsNotReplaced(t *testing.T) {
	l, now := driven(t, 1)
	checked(t, l, now, func(string) fleet.DriverStatus { return fleet.DriverStatus{Running: true} })
	replacesNothing(t, l)
	require.Equal(t, fleet.Peering, l.Entries[0].Phase)
	whole := fleet.Found{
		Attempt: fleet.Attempt{Group: "standard", Instance: l.Entries[0].Name, Number: 1,
			Provider: fleet.Provider{ID: "milan"}},
		Slice: true, Virtual: true, Marked: true, Node: true, Stamped: true, Ready: true,
	}
	checked(t, l, now.Add(3*time.Minute), func(string) fleet.DriverStatus { return fleet.DriverStatus{Found: &whole} })
	require.Empty(t, l.Commands.Open)
	require.Equal(t, fleet.Ready, l.Entries[0].Phase)
}

// When many drivers fail concurrently, a fault in our build is the cause. The group then replaces no driver.
func TestManyFailingDriversAreNotReplaced(t *testing.T) {
	l, now := driven(t, 30)
	failing := 0
	checked(t, l, now, func(string) fleet.DriverStatus {
		failing++
		return fleet.DriverStatus{Running: true, Failing: failing <= 4}
	})
	replacesNothing(t, l)
	require.NotEmpty(t, l.Snapshot(now).Condition)
	checked(t, l, now.Add(3*time.Minute), func(string) fleet.DriverStatus { return fleet.DriverStatus{Running: true} })
	require.Empty(t, l.Snapshot(now).Condition)
}

// An operator restores Temporal from a backup. The group knows one instance; a second instance, booked after the
// backup, is Ready and has pods. The group finds the second instance by the server's request or by the observer's
// round. In both cases the group starts a new epoch and adopts both instances.
func TestRestoredBackupRebuildsFromObjects(t *testing.T) {
	for name, notice := range map[string]func(l *fleet.Ledger, seen fleet.Position, second fleet.Found, now time.Time){
		"the server has seen more": func(l *fleet.Ledger, seen fleet.Position, _ fleet.Found, now time.Time) {
			r := fleet.Request{Delta: 1, Seen: seen, Operation: fleet.Operation{ID: "late", GiveUpAt: now.Add(time.Minute)}}
			err := l.Operate(fleet.Grow, r, now)
			require.True(t, fleet.IsRefused(err, fleet.RefusedNotInitialised), "%v", err)
		},
		"the comparison finds a name that was not given yet": func(l *fleet.Ledger, _ fleet.Position, second fleet.Found,
			now time.Time) {
			l.Step(fleet.GroupInput{Differences: &fleet.Differences{Round: fleet.RoundID{Number: 1},
				Found: []fleet.Found{second}}}, now)
		},
	} {
		t.Run(name, func(t *testing.T) {
			later, now := group(t, 1)
			l, _ := group(t, 1) // the same group, before the second instance was booked
			later.Spec.Max, l.Spec.Max = 2, 2
			operate(t, later, fleet.Grow, fleet.Request{Delta: 1}, now)
			found := func(e *fleet.Entry) fleet.Found {
				return fleet.Found{
					Attempt: fleet.Attempt{Group: "standard", Instance: e.Name, Number: 1, Provider: fleet.Provider{ID: "milan"}},
					Booking: &fleet.Booking{Spec: later.Spec.InstanceSpec, BookedAt: t0},
					Slice:   true, Virtual: true, Marked: true, Node: true, Stamped: true, Ready: true,
				}
			}
			first, second := found(later.Entries[0]), found(later.Entries[1])
			epoch := l.Epoch
			now = now.Add(time.Hour)
			notice(l, later.Snapshot(now).Position(), second, now)
			require.True(t, l.Recovering)
			require.True(t, fleet.EpochBefore(epoch, l.Epoch))
			require.Zero(t, l.NextSeq, "nothing is booked on the past")
			now = now.Add(2 * time.Second)
			id := l.Commands.Open[0].ID
			l.Step(fleet.GroupInput{Result: &fleet.Result{ID: id, Outcome: fleet.OutcomeDone, Found: []fleet.Found{first,
				second}}}, now)
			require.Equal(t, 2, l.Target())
			require.Empty(t, l.Commands.Open, "nothing is undone, nothing is driven")
			for _, e := range l.Entries {
				require.Equal(t, fleet.Ready, e.Phase)
			}
		})
	}
}

// A group in a new epoch finds a joining node. The scale-out of the earlier epoch then reports Ready, and the instance
// becomes Ready as soon as the group has its config.
func TestDriverOfEarlierEpochCompletesTheNode(t *testing.T) {
	l := fleet.NewLedger("standard", t0)
	now := t0.Add(2 * time.Second)
	name := fleet.InstanceName("standard", fleet.NewEpoch(t0.Add(-time.Hour)), 1)
	found := fleet.Found{
		Attempt: fleet.Attempt{Group: "standard", Instance: name, Number: 1, Provider: fleet.Provider{ID: "milan"}},
		Booking: &fleet.Booking{Spec: spec(1).InstanceSpec, BookedAt: t0}, Slice: true, Virtual: true, Node: true,
	}
	l.Step(fleet.GroupInput{Result: &fleet.Result{ID: l.Commands.Open[0].ID, Found: []fleet.Found{found}}}, now)
	require.Equal(t, fleet.Joining, l.Find(name).Phase)
	view := fleet.View{
		Instance: name, Generation: fleet.Generation{Epoch: fleet.NewEpoch(t0.Add(-time.Hour)), Count: 1}, Sequence: 4,
		Phase: fleet.Ready, Attempt: 1, End: fleet.EndFinal, Offer: &fleet.Offer{Name: "milan", Provider: "milan"},
	}
	l.Step(fleet.GroupInput{Views: []fleet.View{view}}, now)
	require.Equal(t, fleet.Joining, l.Find(name).Phase, "the view waits for the group's spec")
	operate(t, l, fleet.Configure, fleet.Request{Spec: spec(1)}, now)
	l.Step(fleet.GroupInput{}, now)
	require.Equal(t, fleet.Ready, l.Find(name).Phase)
}

// A group in a new epoch has forgotten some scale-outs of its earlier epoch. It adopts them while they fit below max.
// It adopts a Ready instance even above max.
func TestForgottenScaleOutsAreAdoptedBelowMax(t *testing.T) {
	l, now := group(t, 1) // the group is at its max
	before := fleet.NewEpoch(t0.Add(-time.Hour))
	view := func(n int, phase fleet.Phase, end fleet.End) fleet.View {
		return fleet.View{
			Instance: fleet.InstanceName("standard", before, n), Generation: fleet.Generation{Epoch: before, Count: n},
			Sequence: 2,
			Phase:    phase, End: end, Attempt: 1, Offer: &fleet.Offer{Name: "milan", Provider: "milan"},
			SpecHash: l.Spec.InstanceSpec.Hash(),
			BookedAt: t0,
		}
	}
	l.Step(fleet.GroupInput{Views: []fleet.View{view(1, fleet.Peering, fleet.EndNone)}}, now)
	require.Equal(t, 1, l.Target())
	require.Equal(t, 1, kinds(l)[fleet.CommandOrder], "it is stopped")
	l.Step(fleet.GroupInput{Views: []fleet.View{view(2, fleet.Ready, fleet.EndFinal)}}, now)
	require.Equal(t, 2, l.Target(), "what exists wins")
	operate(t, l, fleet.Release, fleet.Request{Names: []string{l.Entries[0].Name, l.Entries[1].Name}}, now)
	l.Step(fleet.GroupInput{Views: []fleet.View{view(3, fleet.Peering, fleet.EndNone)}}, now)
	require.Equal(t, 1, l.Target())
	require.NotNil(t, l.Find(view(3, "", "").Instance))
}

// A driver that an operator has reset receives the grant of an attempt that it no longer knows, possibly before the
// event of the reset. The driver keeps the hold until the group has undone the attempt. If the grant is for an
// earlier attempt, which the driver has abandoned, the driver releases the hold.
func TestResetDriverKeepsHoldsOfUnknownAttempts(t *testing.T) {
	d := driver.New(fleet.DriverInput{Instance: fleet.NewInstance("standard-x-1", &spec(1).InstanceSpec, t0),
		Spec: spec(1).InstanceSpec}, t0)
	d.Instance.Attempt = 2
	answer := func(attempt int) []driver.Action {
		key := fleet.ObjectName("standard-x-1", attempt)
		return d.Step(driver.Event{Answer: &fleet.Answer{Key: key, Provider: "milan", State: fleet.HoldGranted}}, t0)
	}
	returned := func(attempt int) {
		actions := answer(attempt)
		require.Len(t, actions, 1)
		require.Equal(t, fleet.ObjectName("standard-x-1", attempt), actions[0].Release.ObjectName())
	}
	d.Step(driver.Event{}, t0)
	require.Empty(t, answer(3))
	require.True(t, d.Step(driver.Event{Reset: true}, t0)[0].CancelStep)
	require.Empty(t, answer(3))
	returned(1)
}

// An operator's retry restarts Return immediately; a drain continues with its budget.
func TestRetryDoesNotRestartTheDrain(t *testing.T) {
	i := fleet.NewInstance("standard-x-1", &spec(1).InstanceSpec, t0)
	i.Phase, i.Attempt, i.Offer = fleet.Draining, 1, &fleet.Offer{Name: "milan", Provider: "milan"}
	d := driver.New(fleet.DriverInput{Instance: i, Spec: spec(1).InstanceSpec}, t0)
	require.Equal(t, fleet.StepDrain, d.Step(driver.Event{}, t0)[0].Run)
	retry := driver.Event{Order: &fleet.Order{Retry: true}}
	require.Empty(t, d.Step(retry, t0))
	drained := fleet.Event{Kind: fleet.Done, Step: fleet.StepDrain, Attempt: 1}
	require.Equal(t, fleet.StepReturn, d.Step(driver.Event{Ended: &drained}, t0)[0].Run)
	require.True(t, d.Step(retry, t0)[0].CancelStep)
}
