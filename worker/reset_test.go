package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// reset does the same as Reset in Temporal's UI and as `temporal workflow reset`. It resets to the last workflow task
// that completed before the event that pick selects.
func (s *scene) reset(id string, pick func(*history.HistoryEvent) bool) {
	s.t.Helper()
	run := s.run(id)
	s.resetTo(id, run, s.lastTask(id, run, pick))
}

// resetTo resets a run to a certain task. Temporal applies the later events again, except the excluded types.
func (s *scene) resetTo(id, run string, task int64, out ...enums.ResetReapplyExcludeType) {
	s.t.Helper()
	require.NotZero(s.t, task)
	_, err := s.temporal.ResetWorkflowExecution(s.ctx, &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: "default", WorkflowExecution: &common.WorkflowExecution{WorkflowId: id, RunId: run},
		Reason: "an operator tries it again", WorkflowTaskFinishEventId: task, RequestId: "r-" + id + run,
		ResetReapplyExcludeTypes: out,
	})
	require.NoError(s.t, err)
}

// scheduled picks the event that schedules the first activity of that name.
func scheduled(name string) func(*history.HistoryEvent) bool {
	return func(e *history.HistoryEvent) bool {
		return e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName() == name
	}
}

// The method `another` waits until the reset has ended the run and the group has started another run.
func (s *scene) another(id, run string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		d, err := s.temporal.DescribeWorkflowExecution(s.ctx, id, "")
		info := d.GetWorkflowExecutionInfo()
		return err == nil && info.GetFirstRunId() != run && info.GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING
	}, waitLimit, waitTick)
}

func (s *scene) run(id string) string {
	s.t.Helper()
	d, err := s.temporal.DescribeWorkflowExecution(s.ctx, id, "")
	require.NoError(s.t, err)
	return d.WorkflowExecutionInfo.Execution.RunId
}

// An operator resets the scale-out of a Ready instance. The node stays.
func TestResetScaleOutOfAReadyInstanceKeepsItsNode(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1).work()
	name := s.grow(1).Instances[0].Name
	s.allIn(fleet.Ready, 1)
	s.isStatus(workflows.ScaleOutID(name), enums.WORKFLOW_EXECUTION_STATUS_COMPLETED)
	require.NoError(t, s.world.PutPod(s.ctx, fleet.ObjectName(name, 1), sim.Pod{Name: "app", Protected: true}))
	s.reset(workflows.ScaleOutID(name), scheduled(activities.NameJoin))
	s.isStatus(workflows.ScaleOutID(name), enums.WORKFLOW_EXECUTION_STATUS_FAILED) // it reports its state and ends
	require.Never(t, func() bool {
		w, err := s.world.Snapshot()
		return err == nil && w.Counts().Ready != 1
	}, 10*time.Second, waitTick, "the Ready node is gone")
	require.Equal(t, 1, s.snapshot().Target)
}

// An operator resets a group's workflow. The group does not forget later bookings, and uses no name twice (invariant
// I2).
func TestResetGroupRebuildsFromObjects(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1).work()
	ctx, cancel := context.WithTimeout(s.ctx, 15*time.Second)
	defer cancel()
	_, err := s.groups.Grow(ctx, s.spec.ID, 1, 0, fleet.Position{})
	require.NoError(t, err)
	is := s.allIn(fleet.Ready, 1)
	name, epoch := is.Instances[0].Name, is.Epoch
	<-ctx.Done() // the booking has expired when Temporal delivers it again after the reset
	s.reset(workflows.NodeGroupID(s.spec.ID), func(e *history.HistoryEvent) bool {
		return e.GetWorkflowExecutionUpdateAcceptedEventAttributes() != nil
	})
	kept := s.until("it has started a new epoch without a request",
		func(snap fleet.Snapshot) bool { return snap.Epoch > epoch })
	require.Equal(t, 1, kept.Target, "the group has forgotten its node")
	s.configure()
	require.Equal(t, name, kept.Instances[0].Name)
	s.grow(1)
	ready := s.allIn(fleet.Ready, 2)
	require.NotEqual(t, ready.Instances[0].Name, ready.Instances[1].Name)
	s.release(ready.Instances[0].Name, ready.Instances[1].Name)
	s.empty()
}

// A provider's peering failed once, and an operator resets the provider's workflow. The provider keeps the holds of its
// Ready nodes.
func TestResetProviderKeepsItsHolds(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1).work()
	s.knobs(0, sim.Knobs{Hang: backend.StageTenant})
	name := s.grow(1).Instances[0].Name
	s.counts("a tenant is made and stays unanswered", func(c sim.Counts) bool { return c.Tenants == 1 })
	require.NoError(t, s.temporal.CancelWorkflow(s.ctx, workflows.PeeringID(s.providers[0]), ""))
	s.allIn(fleet.Failed, 1)
	s.release(name)
	s.knobs(0, sim.Knobs{})
	s.provider(0, "cooled off", func(p fleet.ProviderSnapshot) bool { return p.Phase == fleet.Absent })
	s.grow(1)
	s.allIn(fleet.Ready, 1)
	s.reset(workflows.ProviderID(s.providers[0]), func(e *history.HistoryEvent) bool {
		return e.GetWorkflowExecutionSignaledEventAttributes() != nil
	})
	s.provider(0, "holds its node",
		func(p fleet.ProviderSnapshot) bool { return p.Phase == fleet.Established && len(p.Holds) == 1 })
}

// An operator resets a running scale-out to retry a hanging step. The scale-out starts again from the state of its
// group, and creates no object twice.
func TestResetOfARunningScaleOutContinues(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1).work()
	s.knobs(0, sim.Knobs{Hang: backend.StageVirtualKubelet})
	name := s.grow(1).Instances[0].Name
	s.counts("the slice is granted", func(c sim.Counts) bool { return c.RemoteSlices == 1 })
	run := s.run(workflows.ScaleOutID(name))
	s.reset(workflows.ScaleOutID(name), scheduled(activities.NameDiscover)) // a point before its first message
	s.another(workflows.ScaleOutID(name), run)
	s.knobs(0, sim.Knobs{})
	i := s.allIn(fleet.Ready, 1).Instances[0]
	require.Equal(t, name, i.Name)
	require.Equal(t, 2, i.Attempt)
	s.counts("the first attempt is undone",
		func(c sim.Counts) bool { return c.Slices == 1 && c.RemoteSlices == 1 && c.Nodes == 1 })
	s.release(name)
	s.empty()
}

// An operator resets a running scale-in. The group starts it again, and the instance is removed.
func TestResetOfARunningScaleInContinues(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1, func(g *fleet.GroupSpec) { g.Budgets.Drain = seconds(600) }).work()
	name := s.grow(1).Instances[0].Name
	s.allIn(fleet.Ready, 1)
	require.NoError(t, s.world.PutPod(s.ctx, fleet.ObjectName(name, 1), sim.Pod{Name: "app", Protected: true}))
	s.release(name)
	s.allIn(fleet.Draining, 1)
	require.Eventually(t, func() bool { // the step is running
		d, err := s.temporal.DescribeWorkflowExecution(s.ctx, workflows.ScaleInID(name), "")
		return err == nil && len(d.GetPendingActivities()) == 1
	}, waitLimit, waitTick)
	run := s.run(workflows.ScaleInID(name))
	s.reset(workflows.ScaleInID(name), scheduled(activities.NameDrain))
	s.another(workflows.ScaleInID(name), run)
	require.NoError(t, s.world.RemovePod(s.ctx, fleet.ObjectName(name, 1), "app"))
	s.allIn("", 0)
	s.empty()
}

// An operation reaches a group in the same task in which the group detects that it was reset. The group does not book
// the operation on the old state.
func TestOperationIsNotBookedOnResetState(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1)
	kill := s.spawn()
	s.configure()
	s.grow(1)
	epoch := s.allIn(fleet.Ready, 1).Epoch
	kill()
	s.reset(workflows.NodeGroupID(s.spec.ID), func(e *history.HistoryEvent) bool {
		return e.GetWorkflowExecutionUpdateAcceptedEventAttributes() != nil
	})
	grown := make(chan fleet.Position, 1)
	go func() {
		ctx, cancel := context.WithTimeout(s.ctx, time.Minute)
		defer cancel()
		at, err := s.groups.Grow(ctx, s.spec.ID, 1, 0, fleet.Position{})
		assert.NoError(t, err)
		grown <- at
	}()
	require.Eventually(t, func() bool { // the operation waits for a worker
		d, err := s.temporal.DescribeWorkflowExecution(s.ctx, workflows.NodeGroupID(s.spec.ID), "")
		return err == nil && d.GetPendingWorkflowTask() != nil
	}, waitLimit, waitTick)
	s.spawn()
	s.configure() // CA's next Refresh does the same
	snap := s.shows(<-grown, nil)
	require.Greater(t, snap.Epoch, epoch)
	require.Equal(t, 2, snap.Target)
	s.allIn(fleet.Ready, 2)
}
