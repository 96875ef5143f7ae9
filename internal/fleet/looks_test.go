package fleet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// recoveredLedger returns a group of n Ready instances.
func recoveredLedger(t *testing.T, n int, now time.Time) (*fleet.Ledger, []fleet.Found) {
	t.Helper()
	spec := fleet.GroupSpec{InstanceSpec: fleet.InstanceSpec{ID: "a"}, Max: 10}
	l := fleet.NewLedger("a", now.Add(-time.Minute))
	var found []fleet.Found
	for seq := range n {
		found = append(found, fleet.Found{
			Attempt: fleet.Attempt{Group: "a", Instance: fleet.InstanceName("a", "t0", seq+1), Number: 1,
				Provider: fleet.Provider{ID: "milan"}},
			Booking: &fleet.Booking{Spec: spec.InstanceSpec, BookedAt: now}, Slice: true, Virtual: true, Marked: true,
			Node:    true,
			Stamped: true, Ready: true,
		})
	}
	l.Step(fleet.GroupInput{Result: &fleet.Result{ID: l.Commands.Open[0].ID, Outcome: fleet.OutcomeDone, Found: found}},
		now)
	require.Equal(t, n, l.Target())
	return l, found
}

func lost(found []fleet.Found) (facts []fleet.Fact) {
	for _, f := range found {
		facts = append(facts, fleet.Fact{Instance: f.Attempt.Instance, Attempt: 1, Kind: fleet.Lost})
	}
	return facts
}

// Facts that arrive together cause one inspection, because an inspection lists every object.
func TestInstancesInDoubtShareAnInspection(t *testing.T) {
	now := time.Unix(2_000_000, 0)
	l, found := recoveredLedger(t, 5, now)
	l.Step(fleet.GroupInput{Facts: lost(found[:3])}, now)
	require.Len(t, l.Commands.Open, 1)
	first := l.Commands.Open[0]
	require.Len(t, first.Instances, 3)
	l.Step(fleet.GroupInput{Facts: lost(found[3:4])}, now)
	require.Len(t, l.Commands.Open, 1, "the fourth waits for the look under way")
	l.Step(fleet.GroupInput{Result: &fleet.Result{ID: first.ID, Outcome: fleet.OutcomeDone, Found: found}}, now)
	require.Len(t, l.Commands.Open, 1)
	require.Equal(t, []string{found[3].Attempt.Instance}, l.Commands.Open[0].Instances)
}

// An entirely empty list may come from the wrong cluster. The group never acts on a single inspection with such a list.
func TestSingleEmptyInspectionIsIgnored(t *testing.T) {
	now := time.Unix(2_000_000, 0)
	l, found := recoveredLedger(t, 2, now)
	for range 3 {
		now = now.Add(10 * time.Second)
		l.Step(fleet.GroupInput{Facts: lost(found)}, now)
		require.Len(t, l.Commands.Open, 1)
		l.Step(fleet.GroupInput{Result: &fleet.Result{ID: l.Commands.Open[0].ID, Outcome: fleet.OutcomeDone, Empty: true}},
			now)
	}
	require.Equal(t, 2, l.Target())
}

// A loss takes effect only when the instance has not changed since the round has read it.
func TestLossNeedsAnUnchangedInstance(t *testing.T) {
	now := time.Unix(2_000_000, 0)
	for name, c := range map[string]struct {
		entry        func(*fleet.Entry)
		verdict      func(*fleet.Loss)
		notReady     time.Duration
		silent, bare bool // bare: the group is not configured
		lost         bool
	}{
		"as the round saw it":       {lost: true},
		"it is another":             {verdict: func(v *fleet.Loss) { v.Instance = "a-t0-7" }},
		"it is another attempt":     {verdict: func(v *fleet.Loss) { v.Attempt = 2 }},
		"it is being released":      {entry: func(e *fleet.Entry) { e.Phase = fleet.Draining }},
		"it has changed since":      {entry: func(e *fleet.Entry) { e.Changed++ }},
		"silent for long":           {silent: true, notReady: 5 * time.Minute, lost: true},
		"silent, and not for long":  {silent: true, notReady: 5*time.Minute - 1},
		"silent, and ready again":   {silent: true},
		"no config states the time": {silent: true, notReady: time.Hour, bare: true},
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := recoveredLedger(t, 1, now)
			if !c.bare {
				l.Spec = &fleet.GroupSpec{InstanceSpec: fleet.InstanceSpec{ID: "a"}, Max: 10}
			}
			e := l.Entries[0]
			e.Since = now.Add(-time.Hour)
			if c.notReady > 0 {
				e.NotReady, e.NotReadySince = true, now.Add(-c.notReady)
			}
			read := e.Changed
			v := fleet.Loss{Instance: e.Name, Attempt: 1, Reason: "why", Silent: c.silent}
			if c.entry != nil {
				c.entry(e)
			}
			if c.verdict != nil {
				c.verdict(&v)
			}
			d := &fleet.Differences{Round: fleet.RoundID{Number: 1}, Epoch: l.Epoch, Revision: read, Lost: []fleet.Loss{v}}
			l.Step(fleet.GroupInput{Differences: d}, now)
			require.Equal(t, c.lost, e.Failure != nil)
			if c.lost {
				require.Equal(t, fleet.NewFailure(fleet.CodeLost, "milan", "", "why"), e.Failure)
				require.True(t, e.Force)
			}
		})
	}
}

// When more than three drivers and more than a tenth of all drivers fail their workflow tasks, the build is faulty. The
// group then replaces no driver.
func TestFaultyBuildReplacesNoDriver(t *testing.T) {
	for _, c := range []struct {
		failing, all int
		fails        bool
	}{{3, 3, false}, {4, 4, true}, {4, 39, true}, {4, 40, false}, {5, 49, true}, {5, 50, false}} {
		all := make([]fleet.DriverStatus, c.all)
		for n := range c.failing {
			all[n].Failing = true
		}
		require.Equal(t, c.fails, fleet.BuildFails(all), "%d of %d", c.failing, c.all)
	}
	l := ledger(t)
	require.NoError(t, operate(l, fleet.Grow, 4))
	l.Step(fleet.GroupInput{}, t0)
	check := func(failing bool) {
		l.Commands.Open = nil
		l.Commands.Add(fleet.Command{Kind: fleet.CommandDescribe})
		r := &fleet.Result{ID: l.Commands.Last, Outcome: fleet.OutcomeDone}
		for _, e := range l.Entries {
			r.Drivers = append(r.Drivers, fleet.DriverStatus{Instance: e.Name, Running: true, Failing: failing})
		}
		l.Step(fleet.GroupInput{Result: r}, t0)
	}
	before := l.Revision
	check(true)
	require.Contains(t, l.Snapshot(t0).Condition, "this worker's build cannot continue them")
	require.Equal(t, before+1, l.Revision, "nothing else has changed")
	check(false)
	require.Empty(t, l.Snapshot(t0).Condition)
	require.Equal(t, before+2, l.Revision)
}
