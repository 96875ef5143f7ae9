package fleet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// More scale-ins than a group runs at once are stuck on one provider: those on another one start all the same.
func TestStuckScaleInsHoldNoOtherProviderUp(t *testing.T) {
	const stuck = 150
	now := time.Unix(2_000_000, 0)
	spec := spec()
	spec.ID, spec.Max = "a", 200
	l := fleet.NewLedger("a", now.Add(-time.Minute))
	var found []fleet.Found
	for seq := range stuck + 1 {
		provider := "milan"
		if seq == stuck {
			provider = "rome"
		}
		found = append(found, fleet.Found{
			Attempt: fleet.Attempt{Group: "a", Instance: fleet.InstanceName("a", "t0", 1000+seq), Number: 1,
				Provider: fleet.Provider{ID: provider}},
			Booking: &fleet.Booking{Spec: *spec, BookedAt: now}, Slice: true, Virtual: true, Marked: true, Node: true,
			Stamped: true, Ready: true,
		})
	}
	l.Step(fleet.GroupInput{Result: &fleet.Result{ID: l.Commands.Open[0].ID, Outcome: fleet.OutcomeDone, Found: found}},
		now)
	require.NoError(t, l.Operate(fleet.Configure, fleet.Request{Spec: spec}, now))
	var names []string
	for _, f := range found {
		names = append(names, f.Attempt.Instance)
	}
	op := fleet.Operation{ID: "1", GiveUpAt: now.Add(time.Second)}
	require.NoError(t, l.Operate(fleet.Release, fleet.Request{Operation: op, Names: names}, now))
	l.Step(fleet.GroupInput{}, now)
	running := map[string]int{}
	for _, e := range l.Entries {
		if e.Driver.Kind == fleet.ScaleIn {
			running[e.Provider()]++
		}
	}
	require.Equal(t, map[string]int{"milan": 100, "rome": 1}, running)
	starts := l.Starts
	l.Step(fleet.GroupInput{}, now)
	require.Equal(t, starts, l.Starts, "those that run are counted")
}
