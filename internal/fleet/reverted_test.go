package fleet_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// restored returns a group that was restored from a backup with one instance in creation, and a view of the instance's
// driver. CA has deleted the instance since the backup.
func restored(t *testing.T) (l *fleet.Ledger, settle func(time.Time) int, v fleet.View, now time.Time) {
	t.Helper()
	now = time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	l, settle = aheadLedger(t, now)
	now = now.Add(time.Minute)
	require.NoError(t, l.Operate(fleet.Grow, fleet.Request{Delta: 1,
		Operation: fleet.Operation{ID: "1", GiveUpAt: now.Add(time.Minute)}}, now))
	settle(now)
	e := l.Entries[0]
	v = fleet.View{Instance: e.Name, Generation: e.Driver.Generation, Sequence: 3, Phase: fleet.Joining, Attempt: 1,
		Offer: &fleet.Offer{Provider: "milan"}, SpecHash: e.SpecHash, BookedAt: e.BookedAt}
	return l, settle, v, now
}

// ahead returns a position that the group has not reached.
func ahead(l *fleet.Ledger) fleet.Position {
	return fleet.Position{Epoch: l.Epoch, Revision: l.Revision + 10, Booked: l.NextSeq}
}

// A group is restored from a backup. It stops the drivers of the instances in the backup, and does not adopt these
// instances. CA may have deleted them since the backup, and an instance id must never be used twice (invariant I2).
func TestDriverOfARestoredHistoryIsStopped(t *testing.T) {
	for name, revert := range map[string]func(l *fleet.Ledger, now time.Time){
		"noticed by the server": func(l *fleet.Ledger, now time.Time) {
			require.Error(t, l.Operate(fleet.Grow, fleet.Request{Delta: 1, Seen: ahead(l),
				Operation: fleet.Operation{ID: "2", GiveUpAt: now.Add(time.Minute)}}, now))
		},
		"noticed by the observer": func(l *fleet.Ledger, now time.Time) {
			l.Step(fleet.GroupInput{Differences: &fleet.Differences{Round: fleet.RoundID{Term: 1, Number: 1}, Epoch: l.Epoch,
				Revision: l.Revision, Seen: ahead(l)}}, now)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, settle, v, now := restored(t)
			before := l.Epoch
			revert(l, now)
			settle(now.Add(2 * time.Second))
			settle(now.Add(4 * time.Second))
			require.True(t, fleet.EpochBefore(before, l.Epoch))
			l.Step(fleet.GroupInput{Views: []fleet.View{v}}, now.Add(5*time.Second))
			require.Nil(t, l.Find(v.Instance))
			require.Zero(t, l.Target())
			require.Len(t, l.Commands.Open, 1)
			require.True(t, l.Commands.Open[0].Order.Stop)
		})
	}
}

// A group was terminated, and no backup was restored. No caller has seen a later position than the group, so its
// drivers continue.
func TestDriverOfATerminatedGroupContinues(t *testing.T) {
	_, _, v, now := restored(t)
	l, _ := aheadLedger(t, now.Add(time.Minute))
	v.SpecHash = l.Spec.InstanceSpec.Hash()
	l.Step(fleet.GroupInput{Views: []fleet.View{v}}, now.Add(2*time.Minute))
	require.NotNil(t, l.Find(v.Instance))
	require.Equal(t, 1, l.Target())
}

// A group that was terminated, or whose history was reverted, takes its pause from the value that the observer has
// saved. A group that continues keeps its own value.
func TestPauseSurvivesATerminatedGroup(t *testing.T) {
	now := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	yes, no := true, false
	recovered := func(l *fleet.Ledger, paused *bool, now time.Time) {
		require.Equal(t, fleet.CommandRecover, l.Commands.Open[0].Kind)
		l.Step(fleet.GroupInput{Result: &fleet.Result{ID: l.Commands.Open[0].ID, Outcome: fleet.OutcomeDone,
			Paused: paused}}, now)
	}
	pause := func(l *fleet.Ledger, on bool) {
		require.NoError(t, l.Operate(fleet.Pause, fleet.Request{Paused: on,
			Operation: fleet.Operation{ID: "p", GiveUpAt: now.Add(time.Hour)}}, now))
	}
	for _, saved := range []*bool{nil, &no, &yes} {
		l := fleet.NewLedger("standard", now)
		recovered(l, saved, now.Add(2*time.Second))
		require.Equal(t, saved == &yes, l.Paused, "terminated")
	}
	for _, saved := range []*bool{nil, &no, &yes} {
		l, _ := aheadLedger(t, now)
		pause(l, true)
		l.Step(fleet.GroupInput{Differences: &fleet.Differences{Round: fleet.RoundID{Term: 1, Number: 1}, Epoch: l.Epoch,
			Revision: l.Revision, Seen: ahead(l)}}, now)
		recovered(l, saved, now.Add(2*time.Second))
		require.Equal(t, saved != &no, l.Paused, "reverted")
	}
	l, _ := aheadLedger(t, now)
	pause(l, true)
	later := fleet.NewEpoch(now.Add(time.Hour))
	l.Step(fleet.GroupInput{Views: []fleet.View{{Instance: "standard-" + later + "-1",
		Generation: fleet.Generation{Epoch: later, Count: 1}}}}, now)
	recovered(l, &no, now.Add(2*time.Second))
	require.True(t, l.Paused, "the view has started a new epoch")
}

// In the second round, a restored group adopts every finished node that exists, however many there are. Otherwise CA
// would request these nodes again. The number of undos stays at most five per round.
func TestRestoredGroupAdoptsAllInOneRound(t *testing.T) {
	now := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	l, _ := aheadLedger(t, now)
	now = now.Add(time.Minute)
	var found fleet.Founds
	for n := range 20 {
		at := fleet.Attempt{Group: "standard", Number: 1, Provider: fleet.Provider{ID: "milan"},
			Instance: fleet.InstanceName("standard", l.Epoch, 0) + strconv.Itoa(n)}
		f := fleet.Found{Attempt: at, Slice: true, Virtual: true, Booking: &fleet.Booking{Spec: l.Spec.InstanceSpec}}
		if n < 12 { // a finished node
			f.Marked, f.Node, f.Stamped, f.Ready = true, true, true, true
		}
		found = append(found, f)
	}
	l.NextSeq = 1000
	for number := range int64(2) {
		l.Step(fleet.GroupInput{Differences: &fleet.Differences{Round: fleet.RoundID{Term: 1, Number: number + 1},
			Epoch: l.Epoch, Revision: l.Revision, Found: found}}, now.Add(time.Duration(number)*time.Minute))
	}
	require.Equal(t, 12, l.Target())
	undos := 0
	for _, c := range l.Commands.Open {
		if c.Kind == fleet.CommandUndo {
			undos++
		}
	}
	require.Equal(t, 5, undos)
}

// A release adds one command that saves the group's position. A second release of the same instance adds nothing. A
// release while a command is open replaces the command, because the position has changed.
func TestReleaseSavesThePosition(t *testing.T) {
	now := time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)
	l, settle := aheadLedger(t, now)
	now = now.Add(time.Minute)
	ops := 0
	operate := func(verb fleet.Verb, r fleet.Request) {
		ops++
		r.Operation = fleet.Operation{ID: strconv.Itoa(ops), GiveUpAt: now.Add(time.Minute)}
		require.NoError(t, l.Operate(verb, r, now))
	}
	saves := func() (ids []int64) {
		for _, c := range l.Commands.Open {
			if c.Kind == fleet.CommandSave {
				ids = append(ids, c.ID)
			}
		}
		return ids
	}
	operate(fleet.Grow, fleet.Request{Delta: 3})
	settle(now)
	require.Empty(t, saves())
	names := []string{l.Entries[0].Name, l.Entries[1].Name}
	operate(fleet.Release, fleet.Request{Names: names[:1]})
	first := saves()
	require.Len(t, first, 1)
	require.Equal(t, 1, l.Position().Released)
	operate(fleet.Release, fleet.Request{Names: names[:1]})
	require.Equal(t, first, saves())
	operate(fleet.Release, fleet.Request{Names: names})
	require.Len(t, saves(), 1)
	require.NotEqual(t, first, saves())
	operate(fleet.Shrink, fleet.Request{Delta: 1})
	require.Equal(t, 3, l.Position().Released)
	require.Equal(t, l.Position(), l.Snapshot(now).Position())
	require.Equal(t, l.Position(), l.Receipt(now).Position)

	failed := fleet.Result{ID: saves()[0], Outcome: fleet.OutcomeFailed}
	l.Step(fleet.GroupInput{Result: &failed}, now)
	require.Equal(t, now.Add(30*time.Second), l.Commands.Find(failed.ID).NotBefore)
	l.Step(fleet.GroupInput{Result: &fleet.Result{ID: failed.ID, Outcome: fleet.OutcomeDone}}, now)
	require.Empty(t, saves())
}

// A restored group lacks a release. It stays behind the saved position when its revision has become higher than the
// saved revision.
func TestLackingReleaseShowsARevertAtAnyRevision(t *testing.T) {
	saved := fleet.Position{Epoch: "t1", Revision: 20, Booked: 5, Released: 3}
	restored := fleet.Position{Epoch: "t1", Revision: 25, Booked: 5, Released: 2}
	require.True(t, restored.Behind(saved))
	restored.Released = 3
	require.False(t, restored.Behind(saved))
	require.False(t, fleet.Position{Epoch: "t2"}.Behind(saved), "a later epoch counts from zero")
}

// A group was terminated in the second in which it had assigned a name, and starts again in the same second. The name
// contains the time of the new epoch, but shows no revert of the new group's history. The new group assigns its names
// from the next second on, also when its clock is behind its epoch.
func TestNameOfTheEpochsFirstSecondShowsNoRevert(t *testing.T) {
	now := time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)
	l, _ := aheadLedger(t, now)
	epoch := l.Epoch
	require.Equal(t, fleet.NewEpoch(now), epoch)
	at := fleet.Attempt{Group: "standard", Instance: fleet.InstanceName("standard", epoch, 1), Number: 1,
		Provider: fleet.Provider{ID: "milan"}}
	round := func(number int64, at fleet.Attempt) {
		l.Step(fleet.GroupInput{Differences: &fleet.Differences{Round: fleet.RoundID{Term: 1, Number: number},
			Epoch: l.Epoch, Revision: l.Revision, Found: fleet.Founds{{Attempt: at, Slice: true}}}}, now)
	}
	round(1, at)
	require.Equal(t, epoch, l.Epoch)
	require.NoError(t, l.Operate(fleet.Grow, fleet.Request{Delta: 1,
		Operation: fleet.Operation{ID: "1", GiveUpAt: now.Add(time.Minute)}}, now.Add(-time.Minute)))
	booked, _, ok := fleet.ParseInstanceName("standard", l.Entries[0].Name)
	require.True(t, ok)
	require.True(t, fleet.EpochBefore(epoch, booked), "%s is not later than %s", booked, epoch)
	at.Instance = fleet.InstanceName("standard", booked, 2)
	round(2, at)
	require.NotEqual(t, epoch, l.Epoch, "this group has not assigned the name")
}
