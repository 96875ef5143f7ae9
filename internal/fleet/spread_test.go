package fleet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// A scale-out receives the number of its group's instances on each provider, and the number of earlier scale-outs
// without a provider. With these numbers, the instances of a burst choose different providers.
func TestScaleOutReceivesPlacesOfItsGroup(t *testing.T) {
	l := ledger(t)
	require.NoError(t, operate(l, fleet.Grow, 4))
	l.Step(fleet.GroupInput{}, t0)
	starts := map[string]fleet.Command{}
	for _, c := range l.Commands.Open {
		if c.Kind == fleet.CommandStart {
			starts[c.Instance] = c
		}
	}
	require.Len(t, starts, 4)
	tell := func(seq int, phase fleet.Phase, provider string) {
		v := fleet.View{Instance: booked(seq), Generation: l.Find(booked(seq)).Driver.Generation, Sequence: 1, Attempt: 1,
			Phase: phase, Offer: &fleet.Offer{Provider: provider}}
		l.Step(fleet.GroupInput{Views: []fleet.View{v}}, t0.Add(time.Second))
	}
	tell(1, fleet.Peering, "milan")
	tell(2, fleet.Peering, "milan")

	last := l.DriverInput(starts[booked(4)])
	require.NotNil(t, last)
	require.Equal(t, map[string]int{"milan": 2}, last.Taken)
	require.Equal(t, 1, last.Ahead, "the third")
	third := l.DriverInput(starts[booked(3)])
	require.NotNil(t, third)
	require.Zero(t, third.Ahead)
}
