package fleet_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// The span of the caller stays with an instance until the caller's request is fulfilled. Later events then do not
// belong to that trace.
func TestSpanStaysUntilTheRequestIsFulfilled(t *testing.T) {
	l := ledger(t)
	ask := func(r fleet.Request, verb fleet.Verb, id, trace string) {
		r.Operation, r.Trace = fleet.Operation{ID: id, GiveUpAt: t0}, trace
		require.NoError(t, l.Operate(verb, r, t0))
		l.Step(fleet.GroupInput{}, t0)
	}
	started := func() *fleet.DriverInput {
		return l.DriverInput(l.Commands.Open[len(l.Commands.Open)-1])
	}
	ask(fleet.Request{Delta: 1}, fleet.Grow, "grow", "out")
	require.Equal(t, "out", started().Instance.Trace)

	name := booked(1)
	offer := &fleet.Offer{Name: "milan", Provider: "milan"}
	l.Step(fleet.GroupInput{Views: []fleet.View{{Instance: name, Generation: started().Generation, Sequence: 1,
		Phase: fleet.Ready, Attempt: 1, Offer: offer, End: fleet.EndFinal}}}, t0)
	require.Equal(t, fleet.Ready, l.Find(name).Phase)
	require.Empty(t, l.Find(name).Trace)

	ask(fleet.Request{Names: []string{name}}, fleet.Release, "release", "in")
	require.Equal(t, fleet.ScaleIn, l.Find(name).Driver.Kind)
	require.Equal(t, "in", started().Instance.Trace)
	ask(fleet.Request{Names: []string{name}}, fleet.Release, "again", "another")
	require.Equal(t, "in", l.Find(name).Trace, "Cluster Autoscaler repeats itself")
}
