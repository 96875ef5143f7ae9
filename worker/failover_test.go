package worker_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// The first provider refuses, hangs or is dead at one stage of the scale-out, and the instance becomes Ready on the
// second provider. When the first provider is healthy again, it has no object of ours.
func TestFailover(t *testing.T) {
	t.Parallel()
	quick := func(g *fleet.GroupSpec) {
		g.Budgets.Peer, g.Budgets.Network, g.Budgets.Join = seconds(10), seconds(10), seconds(10)
	}
	for name, knobs := range map[string]sim.Knobs{
		"unreachable":                  {Unreachable: true},
		"refuses the tenant":           {Refuse: backend.StageTenant, Message: "the tenant is cordoned"},
		"refuses the slice":            {Refuse: backend.StageResources, Message: "resources denied"},
		"hangs at the network":         {Hang: backend.StageConnection},
		"hangs at the nonce":           {Hang: backend.StageNonce},
		"hangs at the tenant":          {Hang: backend.StageTenant},
		"hangs at the slice":           {Hang: backend.StageSliceAuth},
		"hangs at the virtual kubelet": {Hang: backend.StageVirtualKubelet},
		"hangs at the node":            {Hang: backend.StageReady},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			change := quick
			if knobs.Refuse != "" {
				change = func(*fleet.GroupSpec) {} // a refusal is final and does not depend on a budget
			}
			s := newScene(t, 2, change)
			s.knobs(0, knobs)
			s.work()
			s.grow(1)
			i := s.allIn(fleet.Ready, 1).Instances[0]
			require.Equal(t, s.providers[1], i.Provider)
			require.Nil(t, i.Failure, "CA sees no error")
			s.knobs(0, sim.Knobs{})
			s.counts("only the second provider's objects", func(c sim.Counts) bool {
				return c == sim.Counts{Peerings: 1, Tenants: 1, Slices: 1, RemoteSlices: 1, VirtualNodes: 1, Nodes: 1, Ready: 1,
					Stamped: 1}
			})
			s.release(i.Name)
			s.empty()
		})
	}
}

func TestLastFailureReachesCA(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1)
	s.knobs(0, sim.Knobs{Refuse: backend.StageResources, Message: "quota exceeded"})
	s.work()
	s.grow(1)
	f := s.allIn(fleet.Failed, 1).Instances[0].Failure
	require.Equal(t, fleet.CodeRefused, f.Code)
	require.Contains(t, f.Message, "quota exceeded", "the provider's own words")
	s.knobs(0, sim.Knobs{})
	s.empty()
}

// A peering hangs at a stage. All holds of the provider share the peering's budget. The budget of an instance's step
// ends earlier, and the failure of the instance names the stage.
func TestTimeoutNamesTheStageOfThePeering(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1, func(g *fleet.GroupSpec) { g.Budgets.Peer = seconds(15) })
	s.knobs(0, sim.Knobs{Hang: backend.StageTenant})
	s.work()
	s.grow(1)
	f := s.allIn(fleet.Failed, 1).Instances[0].Failure
	require.Equal(t, fleet.CodeTimeout, f.Code)
	require.Equal(t, string(backend.StageTenant), f.Stage)
	require.Contains(t, f.Message, "waiting for tenant: ")
	s.knobs(0, sim.Knobs{})
	s.empty()
}

// An operator cancels a stuck peering. Every waiting instance immediately goes to another provider. When the stuck
// provider continues, the unfinished peering is removed.
func TestInstancesLeaveACancelledPeering(t *testing.T) {
	t.Parallel()
	s := newScene(t, 2).work()
	s.knobs(0, sim.Knobs{Hang: backend.StageTenant})
	s.grow(2)
	s.counts("a tenant is made and stays unanswered", func(c sim.Counts) bool { return c.Tenants == 1 })
	require.NoError(t, s.temporal.CancelWorkflow(s.ctx, workflows.PeeringID(s.providers[0]), ""))
	ready := s.allIn(fleet.Ready, 2)
	for _, i := range ready.Instances {
		require.Equal(t, s.providers[1], i.Provider)
		require.Equal(t, 2, i.Attempt)
	}
	s.knobs(0, sim.Knobs{})
	s.counts("nothing stays on the first",
		func(c sim.Counts) bool { return c.Tenants == 1 && c.Peerings == 1 && c.RemoteSlices == 2 })
	d, err := s.temporal.DescribeWorkflowExecution(s.ctx, workflows.PeeringID(s.providers[0]), "")
	require.NoError(t, err)
	require.Equal(t, enums.WORKFLOW_EXECUTION_STATUS_CANCELED, d.WorkflowExecutionInfo.Status)
}

func TestCancelledScaleOutFailsAndIsUndone(t *testing.T) {
	t.Parallel()
	s := newScene(t, 2).work()
	s.knobs(0, sim.Knobs{Hang: backend.StageReady})
	name := s.grow(1).Instances[0].Name
	s.counts("the node is on its way", func(c sim.Counts) bool { return c.Nodes == 1 })
	require.NoError(t, s.temporal.CancelWorkflow(s.ctx, workflows.ScaleOutID(name), ""))
	f := s.allIn(fleet.Failed, 1).Instances[0].Failure
	require.Equal(t, fleet.CodeCancelled, f.Code)
	require.Contains(t, f.Message, "cancelled by an operator during Joining")
	s.empty()
}

func TestCancelledScaleInIsStuckUntilRetried(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1, func(g *fleet.GroupSpec) { g.Budgets.Drain = seconds(120) }).work() // cancelled long before
	name := s.grow(1).Instances[0].Name
	s.allIn(fleet.Ready, 1)
	require.NoError(t, s.world.PutPod(s.ctx, fleet.ObjectName(name, 1), sim.Pod{Name: "protected", Protected: true}))
	s.release(name)
	s.allIn(fleet.Draining, 1)
	require.Eventually(t, func() bool { return s.temporal.CancelWorkflow(s.ctx, workflows.ScaleInID(name), "") == nil },
		waitLimit, waitTick)
	s.until("stuck", func(snap fleet.Snapshot) bool { return len(snap.Instances) == 1 && snap.Instances[0].Stuck != "" })
	require.NoError(t, s.world.RemovePod(s.ctx, fleet.ObjectName(name, 1), "protected"))
	s.release(name)
	s.empty()
	s.allIn("", 0)
}

// A worker dies while a peering hangs, and another worker takes over. The same instance becomes Ready, with one Tenant
// and one slice.
func TestWorkerKilledWhilePeering(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1)
	s.knobs(0, sim.Knobs{Hang: backend.StageTenant})
	kill := s.spawn()
	s.configure()
	name := s.grow(1).Instances[0].Name
	s.counts("a tenant is made and stays unanswered", func(c sim.Counts) bool { return c.Tenants == 1 })
	kill()
	s.spawn()
	s.knobs(0, sim.Knobs{})
	i := s.allIn(fleet.Ready, 1).Instances[0]
	require.Equal(t, name, i.Name)
	require.Equal(t, 1, i.Attempt)
	s.counts("one of each", func(c sim.Counts) bool {
		return c == sim.Counts{Peerings: 1, Tenants: 1, Slices: 1, RemoteSlices: 1, VirtualNodes: 1, Nodes: 1, Ready: 1,
			Stamped: 1}
	})
	s.release(name)
	s.empty()
}

// A person removes a peering while the provider's entity counts it as established. The next node makes the entity
// repair the peering.
func TestPeeringRemovedByHandIsRepaired(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1).work()
	s.grow(1)
	s.allIn(fleet.Ready, 1)
	require.NoError(t, s.world.Edit(s.ctx, func(w *sim.State) error {
		delete(w.Consumer.Peerings, s.providers[0])
		w.Providers[s.providers[0]].Tenant = nil
		return nil
	}))
	s.grow(1)
	ready := s.allIn(fleet.Ready, 2)
	for _, i := range ready.Instances {
		require.Equal(t, 1, i.Attempt)
	}
	s.counts("peered again", func(c sim.Counts) bool { return c.Peerings == 1 && c.Tenants == 1 && c.Nodes == 2 })
	s.release(ready.Instances[0].Name, ready.Instances[1].Name)
	s.empty()
}
