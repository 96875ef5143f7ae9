package fleet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// Cancelled and Deadline end a step as Done, Refused and GaveUp do: those of another step or attempt are not for the
// instance. A scale-out that is on its way out would otherwise make a scale-in stuck, or fail a later attempt.
func TestStaleEndsOfStepsChangeNothing(t *testing.T) {
	draining := fleet.NewInstance("standard-x-1", spec(), t0)
	play(t, &draining, t0, done, done, chooseA, done, done, leave)
	second := fleet.NewInstance("standard-x-2", spec(), t0)
	play(t, &second, t0, done, done, chooseA, refused, done, chooseB, done)
	require.Equal(t, fleet.Joining, second.Phase)
	require.Equal(t, 2, second.Attempt)
	for _, c := range []struct {
		inst *fleet.Instance
		ev   fleet.Event
	}{
		{&draining, fleet.Event{Kind: fleet.Cancelled, Step: fleet.StepPeer, Attempt: 1}},
		{&draining, fleet.Event{Kind: fleet.Deadline, Step: fleet.StepWaitForVirtualNode, Attempt: 1}},
		{&second, fleet.Event{Kind: fleet.Cancelled, Step: fleet.StepWaitForVirtualNode, Attempt: 1}},
		{&second, fleet.Event{Kind: fleet.Deadline, Step: fleet.StepPeer, Attempt: 1}},
	} {
		before := *c.inst
		_, err := c.inst.Apply(c.ev, t0)
		var stale *fleet.ErrStale
		require.ErrorAs(t, err, &stale, "%s of %s in %s", c.ev.Kind, c.ev.Step, c.inst.Phase)
		require.Equal(t, before, *c.inst)
	}
}

// An attempt above the instance's own is one whose report is on its way only while a scale-out may be running. Of an
// instance that is Ready or leaving it is nobody's.
func TestOnlyAGrowingInstanceBooksALaterAttempt(t *testing.T) {
	for _, c := range []struct {
		phase  fleet.Phase
		orphan bool
	}{
		{fleet.Discovering, false}, {fleet.Peering, false}, {fleet.Joining, false},
		{fleet.Ready, true}, {fleet.Draining, true}, {fleet.Unpeering, true}, {fleet.Failed, true}, {fleet.Released, true},
	} {
		l := fleet.Ledger{Instances: []fleet.Instance{{Name: "standard-x-1", Attempt: 1, Phase: c.phase, Since: t0}}}
		later := []fleet.Seen{{Instance: "standard-x-1", Attempt: 2, Slice: true, Virtual: true, Node: true}}
		orphans, _ := l.Compare(later, t0, t0)
		require.Empty(t, orphans, "once is not enough")
		orphans, _ = l.Compare(later, t0, t0)
		require.Equal(t, c.orphan, len(orphans) == 1, "%s", c.phase)
	}
}

// A removal that failed at once must not be tried again at once: with linger 0 that is a loop without a pause.
func TestFailedRemovalWaitsBeforeTheNext(t *testing.T) {
	p := provider()
	p.Acquire("a-1", shape("1"), offer(0), t0)
	p.Apply(fleet.PeeringDone, nil, t0)
	p.Release("a-1", t0)
	p.Apply(fleet.PeeringElapsed, nil, t0)
	require.Equal(t, fleet.Removing, p.Phase)
	p.Apply(fleet.PeeringFailed, &fleet.Failure{Code: fleet.CodeRefused, Message: "credentials are gone"}, t0)
	require.Equal(t, fleet.Lingering, p.Phase)
	require.GreaterOrEqual(t, p.NextTimer().Sub(t0), time.Minute)
}
