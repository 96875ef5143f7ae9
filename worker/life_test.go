package worker_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

func TestLifeOfAnInstance(t *testing.T) {
	t.Parallel()
	s := newScene(t, 2).work()
	began := time.Now()
	booked := s.grow(1)
	t.Logf("booked in %s", time.Since(began))
	require.Equal(t, 1, booked.Target)
	require.Len(t, booked.Instances, 1)
	name := booked.Instances[0].Name
	second, _, _ := fleet.ParseInstanceName(s.spec.ID, name)
	require.True(t, fleet.EpochBefore(booked.Epoch, second), "%s says when it was booked", name)

	ready := s.allIn(fleet.Ready, 1).Instances[0]
	require.Equal(t, booked.Instances[0].Name, ready.Name, "the instance keeps the id it had when it was booked (I2)")
	require.Equal(t, s.providers[0], ready.Provider, "the cheapest")
	w, err := s.world.Snapshot()
	require.NoError(t, err)
	node := w.Consumer.Nodes[fleet.ObjectName(ready.Name, 1)]
	require.NotNil(t, node)
	require.Equal(t, fleet.InstanceID(s.spec.ID, ready.Name), node.Spec.ProviderID)
	require.Equal(t, s.spec.ID, node.Labels[fleet.LabelGroup])

	released := s.release(ready.Name)
	require.Equal(t, 0, released.Target, "the target size decreases immediately")
	require.Equal(t, 0, s.release(ready.Name).Target, "and once (I4)")
	s.allIn("", 0)
	s.empty()
}

func TestInstancesOfOneProviderShareItsPeering(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1).work()
	s.grow(3)
	ready := s.allIn(fleet.Ready, 3)
	s.counts("three nodes, one peering", func(c sim.Counts) bool {
		return c == sim.Counts{Peerings: 1, Tenants: 1, Slices: 3, RemoteSlices: 3, VirtualNodes: 3, Nodes: 3, Ready: 3,
			Stamped: 3}
	})
	s.release(ready.Instances[0].Name)
	s.allIn(fleet.Ready, 2)
	s.counts("the peering stays for the others",
		func(c sim.Counts) bool { return c.Peerings == 1 && c.Slices == 2 && c.RemoteSlices == 2 })
	s.release(ready.Instances[1].Name, ready.Instances[2].Name)
	s.empty()
}

func TestFullProviderSendsInstancesToTheNext(t *testing.T) {
	t.Parallel()
	s := newScene(t, 2, func(g *fleet.GroupSpec) { g.Max = 6 }).work() // each provider has room for 4
	s.grow(6)
	ready := s.allIn(fleet.Ready, 6)
	on := map[string]int{}
	for _, i := range ready.Instances {
		on[i.Provider]++
	}
	require.Equal(t, map[string]int{s.providers[0]: 4, s.providers[1]: 2}, on)
}

func TestNoOfferFailsVisiblyUntilCADeletesIt(t *testing.T) {
	t.Parallel()
	s := newScene(t, 0)
	s.work()
	s.grow(1)
	failed := s.allIn(fleet.Failed, 1)
	require.Equal(t, 1, failed.Target, "a failed instance counts until CA deletes it (I3)")
	i := failed.Instances[0]
	require.Equal(t, fleet.StateCreating, i.State)
	require.Equal(t, fleet.CodeNoOffer, i.Failure.Code)
	require.Contains(t, i.Failure.Message, "there is no offer")
	require.Equal(t, 0, s.release(i.Name).Target)
	s.allIn("", 0)
}

// CA may release an instance at any moment, and all of its objects are then removed.
func TestInstanceReleasedInEachPhaseLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		hang backend.Stage
		made func(sim.Counts) bool
	}{
		{"peering", backend.StageTenant, func(c sim.Counts) bool { return c.Tenants == 1 }},
		{"joining", backend.StageSliceAuth, func(c sim.Counts) bool { return c.Slices == 1 }},
		{"joining, node there", backend.StageReady, func(c sim.Counts) bool { return c.Nodes == 1 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t, 1).work()
			s.knobs(0, sim.Knobs{Hang: c.hang})
			s.grow(1)
			s.counts("the step is under way", c.made)
			i := s.allIn(fleet.Peering, 1).Instances[0]
			require.Equal(t, 0, s.release(i.Name).Target)
			s.allIn("", 0)
			s.knobs(0, sim.Knobs{})
			s.empty()
		})
	}
}

func TestShrinkCancelsOnlyUnfinishedInstances(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1).work()
	s.grow(1)
	s.allIn(fleet.Ready, 1)
	s.knobs(0, sim.Knobs{Hang: backend.StageNode})
	s.grow(2)
	at, err := s.groups.Shrink(s.ctx, s.spec.ID, 3, fleet.Position{})
	require.Equal(t, 1, s.shows(at, err).Target)
	s.knobs(0, sim.Knobs{})
	s.allIn(fleet.Ready, 1)
	_, err = s.groups.Shrink(s.ctx, s.spec.ID, 1, fleet.Position{})
	require.True(t, fleet.IsRefused(err, fleet.RefusedPrecondition), "%v", err)
}

func TestRefusedOperationsChangeNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1).work()
	before := s.snapshot()
	for _, c := range []struct {
		kind fleet.RefusalKind
		call func() error
	}{
		{fleet.RefusedInvalid, func() error {
			_, err := s.groups.Grow(s.ctx, s.spec.ID, 0, 0, fleet.Position{})
			return err
		}},
		{fleet.RefusedInvalid, func() error {
			_, err := s.groups.Grow(s.ctx, s.spec.ID, -3, 0, fleet.Position{})
			return err
		}},
		{fleet.RefusedMax, func() error { _, err := s.groups.Grow(s.ctx, s.spec.ID, 5, 0, fleet.Position{}); return err }},
		{fleet.RefusedMax, func() error {
			_, err := s.groups.Grow(s.ctx, s.spec.ID, math.MaxInt32, 0,
				fleet.Position{})
			return err
		}},
		{fleet.RefusedPrecondition,
			func() error { _, err := s.groups.Shrink(s.ctx, s.spec.ID, 1, fleet.Position{}); return err }},
		{fleet.RefusedInvalid, func() error {
			_, err := s.groups.Release(s.ctx, s.spec.ID, []string{"other-x-1"}, fleet.Position{})
			return err
		}},
	} {
		require.True(t, fleet.IsRefused(c.call(), c.kind), "%s: %v", c.kind, c.call())
	}
	require.Equal(t, before, s.snapshot(), "a refused operation leaves no trace")
	_, err := s.groups.Grow(s.ctx, "nobody", 1, 0, fleet.Position{})
	require.ErrorIs(t, err, fleet.ErrUnavailable)
	require.ErrorContains(t, err, "nodegroup/nobody does not run")
}

// Calls that share an update have one outcome each. A call that is repeated because its answer was lost has the same
// outcome again.
func TestCallsInOneUpdateHaveTheirOwnOutcomes(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1).work()
	grown := s.grow(2)
	calls := []fleet.Call{s.groups.NewCall(s.ctx, []string{grown.Instances[0].Name}),
		s.groups.NewCall(s.ctx, []string{"other-x-1"}), s.groups.NewCall(s.ctx, []string{grown.Instances[1].Name})}
	for range 2 {
		at, refused, err := s.groups.ReleaseEach(s.ctx, s.spec.ID, calls, grown.Position())
		require.Zero(t, s.shows(at, err).Target)
		require.Len(t, refused, 1)
		require.Equal(t, fleet.RefusedInvalid, refused[1].Kind)
	}
}

func TestTerminatedGroupRecoversFromObjects(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1).work()
	s.grow(2)
	before := s.allIn(fleet.Ready, 2)
	require.NoError(t, s.temporal.TerminateWorkflow(s.ctx, workflows.NodeGroupID(s.spec.ID), "", "test"))
	_, err := s.groups.Snapshot(s.ctx, s.spec.ID)
	require.ErrorIs(t, err, fleet.ErrUnavailable, "a group that does not run is not a group of size zero")
	after := s.configure()
	require.Equal(t, 2, after.Target)
	require.Equal(t, before.Instances[0].Name, after.Instances[0].Name)
	require.True(t, fleet.EpochBefore(before.Epoch, after.Epoch), "%s after %s", after.Epoch, before.Epoch)
	s.release(after.Instances[0].Name, after.Instances[1].Name)
	s.empty()
}

func TestLateCallBooksNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1)
	kill := s.spawn()
	s.configure()
	kill()
	ctx, cancel := context.WithTimeout(s.ctx, 1500*time.Millisecond)
	defer cancel()
	_, err := s.groups.Grow(ctx, s.spec.ID, 1, 0, fleet.Position{})
	require.ErrorIs(t, err, fleet.ErrOutcomeUnknown, "without an answer it may or may not be booked")
	s.spawn()
	s.grow(1) // this call is answered, so the group has decided every earlier operation
	s.allIn(fleet.Ready, 1)
	require.Equal(t, 1, s.snapshot().Target)
}
