package fleet_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
)

// backup returns a copy of the ledger in the form in which a database backup stores it.
func backup(t *testing.T, l *fleet.Ledger) *fleet.Ledger {
	t.Helper()
	text, err := json.Marshal(l)
	require.NoError(t, err)
	var again fleet.Ledger
	require.NoError(t, json.Unmarshal(text, &again))
	return again.Restore()
}

// rebuild completes the recovery of a ledger. It returns the objects that exist to the ledger, and the bill that the
// observer has saved.
func rebuild(t *testing.T, l *fleet.Ledger, now time.Time, bill *money.Bill, found ...fleet.Found) {
	t.Helper()
	require.True(t, l.Recovering)
	for end := now.Add(15 * time.Minute); now.Before(end) && l.Recovering; now = now.Add(30 * time.Second) {
		l.Step(fleet.GroupInput{}, now)
		for _, c := range l.Commands.Open {
			if c.Kind == fleet.CommandRecover {
				r := fleet.Result{ID: c.ID, Outcome: fleet.OutcomeDone, Found: found, Bill: bill}
				l.Step(fleet.GroupInput{Result: &r}, now)
			}
		}
	}
	require.False(t, l.Recovering)
}

// standing returns the node of the ledger's first instance in the form in which a recovery finds it.
func standing(l *fleet.Ledger, hourly float64) fleet.Found {
	e := l.Entries[0]
	return fleet.Found{Slice: true, Virtual: true, Marked: true, Node: true, Stamped: true, Ready: true,
		Booking: &fleet.Booking{Spec: storySpec().InstanceSpec, BookedAt: e.BookedAt, Hourly: hourly},
		Attempt: fleet.Attempt{Group: "a", Instance: e.Name, Number: 1, Provider: fleet.Provider{ID: "milan"}}}
}

// A backup contains a node that costs 2 an hour and that was released soon afterwards. When the backup is restored
// twelve hours later, the node costs nothing for the time in between.
func TestRestoredGroupDoesNotBillGoneNodes(t *testing.T) {
	at := moment(t, "2026-11-10T00:00:00Z")
	later := at.Add(12 * time.Hour)
	for name, revert := range map[string]func(l *fleet.Ledger){
		"noticed by the server": func(l *fleet.Ledger) {
			_ = l.Operate(fleet.Configure, fleet.Request{Seen: ahead(l), Spec: storySpec()}, later)
		},
		"noticed by the observer": func(l *fleet.Ledger) {
			l.Step(fleet.GroupInput{Differences: &fleet.Differences{Round: fleet.RoundID{Term: 1, Number: 1}, Epoch: l.Epoch,
				Revision: l.Revision, Seen: ahead(l)}}, later)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := backup(t, costly(t, at, 2))
			revert(l)
			rebuild(t, l, later, nil)
			require.Zero(t, l.Target())
			require.Zero(t, l.Cost.Providers["milan"].Total)

			l = backup(t, costly(t, at, 2))
			exists := standing(l, 2)
			revert(l)
			rebuild(t, l, later, nil, exists)
			require.Equal(t, 1, l.Target())
			require.InDelta(t, 24, l.Cost.Providers["milan"].Total.Float(), 0.2, "what exists has cost all the time")
		})
	}
}

// A group is restored from a backup. Before the observer notices this, the group counts the costs of a node that is
// gone. The observer saved the group's sums before the restore; these sums replace the wrong ones.
func TestSavedSumsReplaceSumsOfABackup(t *testing.T) {
	at := moment(t, "2026-11-29T23:00:00Z")
	l := costly(t, at, 2)
	restored := backup(t, l)
	l.Step(fleet.GroupInput{}, at.Add(10*time.Hour)) // the node existed for ten hours
	saved := l.Bill(at.Add(10 * time.Hour))
	saved.Revision++ // the release of the node

	later := at.Add(24 * time.Hour)
	restored.Step(fleet.GroupInput{}, later) // the restored group counts 48 for a node that is gone
	restored.Step(fleet.GroupInput{Differences: &fleet.Differences{Round: fleet.RoundID{Term: 1, Number: 1},
		Epoch: restored.Epoch, Revision: restored.Revision, Seen: ahead(restored)}}, later)
	rebuild(t, restored, later, &saved)
	require.Equal(t, money.Of(20), restored.Cost.Providers["milan"].Total)
	require.Equal(t, money.Of(20), restored.Cost.ThisMonth())
	require.Equal(t, []money.CostDay{{Date: "2026-11-29", Providers: map[string]money.Money{"milan": money.Of(2)}}},
		restored.CostDays[:1])
	require.Equal(t, saved.Cost.Since, restored.Cost.Since)

	restored.Step(fleet.GroupInput{}, moment(t, "2026-12-01T01:00:00Z"))
	require.Zero(t, restored.Cost.ThisMonth())
}

// A group whose history is lost continues with the sums that the observer has saved. The costs of its nodes in the
// time between are added. An older bill does not replace the sums of the group.
func TestLostGroupContinuesItsBill(t *testing.T) {
	at := moment(t, "2026-11-10T00:00:00Z")
	l := costly(t, at, 2)
	saved, exists := l.Bill(at.Add(10*time.Hour)), standing(l, 2)
	fresh := fleet.NewLedger("a", at.Add(11*time.Hour))
	rebuild(t, fresh, at.Add(11*time.Hour), &saved, exists)
	require.Equal(t, saved.Cost.Since, fresh.Cost.Since)
	require.InDelta(t, 22, fresh.Cost.Providers["milan"].Total.Float(), 0.1)

	fresh = fleet.NewLedger("b", at.Add(11*time.Hour))
	rebuild(t, fresh, at.Add(11*time.Hour), &saved)
	require.Zero(t, fresh.Cost.ThisMonth(), "another group's")

	l.Step(fleet.GroupInput{}, at.Add(20*time.Hour))
	l.Step(fleet.GroupInput{Differences: &fleet.Differences{Round: fleet.RoundID{Term: 1, Number: 1}, Epoch: l.Epoch,
		Revision: l.Revision, Seen: ahead(l)}}, at.Add(20*time.Hour))
	rebuild(t, l, at.Add(20*time.Hour), &saved, exists)
	require.InDelta(t, 40, l.Cost.Providers["milan"].Total.Float(), 0.1)
}

// When two rounds do not find a node, its costs end with the last round that found it, even when that round was
// before midnight. Its cleanup costs nothing. If the second round finds the node again, or if its slice still exists,
// the costs continue.
func TestLostNodeCostsUntilTheLastRoundThatFoundIt(t *testing.T) {
	at := moment(t, "2026-11-10T20:00:00Z")
	missing := func(l *fleet.Ledger, number, before int64, now time.Time, found ...fleet.Found) {
		d := fleet.Differences{Round: fleet.RoundID{Term: 1, Number: number}, Epoch: l.Epoch, Revision: l.Revision,
			Before: before, Found: found}
		if len(found) == 0 {
			d.Missing = []string{l.Entries[0].Name}
		}
		l.Step(fleet.GroupInput{Differences: &d}, now)
	}
	l := costly(t, at, 2)
	morning := at.Add(10 * time.Hour)
	missing(l, 1, 9*3600, morning) // no round was complete for nine hours
	require.Equal(t, fleet.Ready, l.Entries[0].Phase)
	missing(l, 2, 60, morning.Add(time.Minute))
	require.Equal(t, fleet.Draining, l.Entries[0].Phase)
	require.Equal(t, money.Of(2), l.Cost.Providers["milan"].Total, "an hour")
	require.Equal(t, money.Of(2), l.CostDays[0].Providers["milan"])
	require.Equal(t, money.Of(2), l.Cost.ThisMonth())
	l.Step(fleet.GroupInput{}, morning.Add(time.Hour))
	require.Equal(t, money.Of(2), l.Cost.Providers["milan"].Total, "it is being cleaned up")

	l = costly(t, at, 2)
	missing(l, 1, 9*3600, morning)
	there := standing(l, 2)
	there.Ready = false
	missing(l, 2, 60, morning.Add(time.Minute), there)
	require.Equal(t, fleet.Ready, l.Entries[0].Phase)
	require.InDelta(t, 20, l.Cost.Providers["milan"].Total.Float(), 0.1, "it exists")

	l = costly(t, at, 2)
	alone := there
	alone.Virtual, alone.Node = false, false
	missing(l, 1, 9*3600, morning, alone)
	missing(l, 2, 60, morning.Add(time.Minute), alone)
	require.Equal(t, fleet.Draining, l.Entries[0].Phase)
	require.InDelta(t, 20, l.Cost.Providers["milan"].Total.Float(), 0.1, "its slice exists")
}

// The costs of a group continue when it drops its last past day.
func TestCostsContinueWithoutPastDays(t *testing.T) {
	at := moment(t, "2026-11-10T20:00:00Z")
	l := costly(t, at, 2)
	l.Step(fleet.GroupInput{}, at.Add(6*time.Hour))
	l.Entries[0].Phase = fleet.Released
	l.Step(fleet.GroupInput{}, at.Add(6*time.Hour))
	l.Step(fleet.GroupInput{}, at.Add(8*time.Hour))
	require.NotPanics(t, func() { l.Step(fleet.GroupInput{}, at.Add(403*24*time.Hour)) })
}

// The history of a group was reverted, and the group's revision has since overtaken the revision of the saved bill.
// The saved bill still counts as later.
func TestSavedBillWinsOverAnOvertakenRevision(t *testing.T) {
	at := moment(t, "2026-11-10T00:00:00Z")
	l := costly(t, at, 2)
	restored := backup(t, l)
	l.Step(fleet.GroupInput{}, at.Add(10*time.Hour))
	saved := l.Bill(at.Add(10 * time.Hour))
	later := at.Add(24 * time.Hour)
	saved.Booked++ // the lost history had booked one more instance
	restored.Revision += 50
	seen := fleet.Position{Epoch: restored.Epoch, Revision: saved.Revision, Booked: restored.NextSeq + 1}
	require.True(t, restored.Behind(seen))
	restored.Step(fleet.GroupInput{Differences: &fleet.Differences{Round: fleet.RoundID{Term: 1, Number: 1},
		Epoch: restored.Epoch, Revision: restored.Revision, Seen: seen}}, later)
	rebuild(t, restored, later, &saved)
	require.Equal(t, money.Of(20), restored.Cost.Providers["milan"].Total)
}

// A day that has ended is published. A reader that adds the snapshot and the past days does not count the day twice.
func TestEndedDayIsPublished(t *testing.T) {
	at := moment(t, "2026-11-10T20:00:00Z")
	l := costly(t, at, 2)
	published := l.Snapshot(at)
	l.Step(fleet.GroupInput{Differences: &fleet.Differences{Round: fleet.RoundID{Term: 0, Number: 2}, Epoch: l.Epoch,
		Revision: l.Revision}}, at.Add(6*time.Hour))
	require.NotEqual(t, published.Revision, l.Revision)
}

// A node that is found without a slice after the restore of a backup costs nothing for the time since the backup.
func TestNodeWithoutASliceCostsNothingInTheGap(t *testing.T) {
	at := moment(t, "2026-11-10T00:00:00Z")
	later := at.Add(12 * time.Hour)
	l := backup(t, costly(t, at, 2))
	exists := standing(l, 2)
	exists.Slice = false
	l.Step(fleet.GroupInput{Differences: &fleet.Differences{Round: fleet.RoundID{Term: 1, Number: 1}, Epoch: l.Epoch,
		Revision: l.Revision, Seen: ahead(l)}}, later)
	rebuild(t, l, later, nil, exists)
	require.Zero(t, l.Cost.Providers["milan"].Total)
}
