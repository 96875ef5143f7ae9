package fleet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// recoveredLedger is a group of n Ready instances.
func recoveredLedger(t *testing.T, n int, now time.Time) (*fleet.Ledger, []fleet.Found) {
	t.Helper()
	spec := fleet.GroupSpec{ID: "a", Max: 10}
	l := fleet.NewLedger("a", now.Add(-time.Minute))
	var found []fleet.Found
	for seq := range n {
		found = append(found, fleet.Found{
			Attempt: fleet.Attempt{Group: "a", Instance: fleet.InstanceName("a", "t0", seq+1), Number: 1,
				Provider: fleet.Provider{ID: "milan"}},
			Booking: &fleet.Booking{Spec: spec, BookedAt: now}, Slice: true, Virtual: true, Marked: true, Node: true,
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

// Facts that come together cost one look, not one each: a look lists everything.
func TestInstancesInDoubtShareALook(t *testing.T) {
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

// A list that shows nothing at all may come from the wrong cluster: single looks never act on one.
func TestALookThatShowsNothingAtAllIsNotBelieved(t *testing.T) {
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
