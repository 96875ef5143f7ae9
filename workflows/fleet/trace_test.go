package fleet_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/provider"
)

// The span of who asked goes with an instance until it is as asked for, so that what becomes of it later is not his.
func TestTraceGoesWithTheInstance(t *testing.T) {
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

// A peering is made for the first who waits for it, and nobody's span is kept who does not wait.
func TestTraceGoesWithTheWait(t *testing.T) {
	p := provider.New("milan", t0)
	recovered(t, p, false)
	require.Empty(t, p.Trace())
	for _, number := range []string{"1", "2"} {
		p.Step(provider.Input{Requests: []fleet.HoldRequest{{
			Kind: fleet.HoldAcquire, Key: "a-t0-" + number + "-1", Shape: shape("1"), Trace: "span-" + number,
			Offer: &fleet.Offer{Name: "milan", Provider: "milan", Lendable: lendable(2)},
		}}}, t0)
	}
	require.Equal(t, "span-1", p.Trace())
	p.Step(provider.Input{Report: &fleet.PeeringReport{Run: p.Run, Event: fleet.PeeringDone}}, t0)
	require.Equal(t, fleet.HoldGranted, p.Holds["a-t0-1-1"].State)
	require.Empty(t, p.Trace())
	require.Empty(t, p.Holds["a-t0-1-1"].Trace)
}
