package worker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// An operator resets a run of a group that has continued as new to its last task, the one in which it did: it does not go
// on with the state that it handed over then.
func TestResetToTheTaskThatContinuedAsNewBeginsAnew(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1).work()
	s.grow(1)
	s.allIn(fleet.Ready, 1)
	// A history is as long as that when the task begins that is told of the first scale-out's start.
	_, told := s.tasks(s.run(workflows.NodeGroupID(s.spec.ID)))

	s = newScene(t, 1)
	id := workflows.NodeGroupID(s.spec.ID)
	first, err := s.temporal.ExecuteWorkflow(s.ctx, client.StartWorkflowOptions{
		ID: id, TaskQueue: s.queue, WorkflowTaskTimeout: 2 * time.Second,
	}, workflows.TypeNodeGroup, workflows.NodeGroupInput{Group: s.spec.ID, ContinueAt: told - 1})
	require.NoError(t, err)
	s.work()
	s.grow(1)
	s.allIn(fleet.Ready, 1)
	require.Eventually(t, func() bool { return s.run(id) != first.GetRunID() }, soon, waitTick, "it continues as new")
	s.grow(1)
	is := s.allIn(fleet.Ready, 2)

	quiet, length := 0, int64(0) // a signal that comes later would be noticed
	require.Eventually(t, func() bool {
		d, err := s.temporal.DescribeWorkflowExecution(s.ctx, id, "")
		if now := d.GetWorkflowExecutionInfo().GetHistoryLength(); err != nil || now != length {
			quiet, length = 0, now
		}
		quiet++
		return quiet > 20
	}, soon, waitTick)

	last, _ := s.tasks(first.GetRunID())
	s.resetTo(id, first.GetRunID(), last, enums.RESET_REAPPLY_EXCLUDE_TYPE_SIGNAL, enums.RESET_REAPPLY_EXCLUDE_TYPE_UPDATE)
	kept := s.until("it has begun anew", func(snap fleet.Snapshot) bool { return snap.Epoch > is.Epoch })
	require.Equal(t, 2, kept.Target)
}

// tasks tells which event completed the run's last task, and how long its history was when the task began that was told of
// the first child's start.
func (s *scene) tasks(run string) (last int64, told int) {
	s.t.Helper()
	events := s.temporal.GetWorkflowHistory(s.ctx, workflows.NodeGroupID(s.spec.ID), run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	child := false
	for events.HasNext() {
		e, err := events.Next()
		require.NoError(s.t, err)
		child = child || e.EventType == enums.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED
		switch {
		case e.EventType == enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
			last = e.EventId
		case e.EventType == enums.EVENT_TYPE_WORKFLOW_TASK_STARTED && child && told == 0:
			told = int(e.EventId)
		}
	}
	return last, told
}

// An operator resets a group to a moment in which it was busy telling and starting drivers: it starts none of the past.
func TestResetGroupStartsNoDriverOfThePast(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1, func(g *fleet.GroupSpec) { g.Budgets.Join, g.Budgets.Total = seconds(100), seconds(120) }).work()
	id := workflows.NodeGroupID(s.spec.ID)
	s.knobs(0, sim.Knobs{Hang: backend.StageVirtualKubelet})
	s.grow(2)
	is := s.allIn(fleet.Joining, 2)
	launched := time.Now()
	back, stays := is.Instances[0].Name, is.Instances[1].Name
	s.release(back)
	s.until("it has left", func(snap fleet.Snapshot) bool { return len(snap.Instances) == 1 || snap.Instances[0].Phase.Shrinking() })
	s.knobs(0, sim.Knobs{})
	s.allIn(fleet.Ready, 1)
	// The group makes sure of its drivers every minute: by then it would start the one that has ended.
	require.Eventually(t, func() bool { return time.Since(launched) > time.Minute+5*time.Second }, 2*time.Minute, time.Second)

	drove := s.run(workflows.ScaleOutID(stays))
	var told, at int64
	events := s.temporal.GetWorkflowHistory(s.ctx, id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() && at == 0 {
		e, err := events.Next()
		require.NoError(t, err)
		switch {
		case e.EventType == enums.EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_SIGNALED:
			told = e.EventId
		case e.EventType == enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED && told != 0:
			at = e.EventId
		}
	}
	require.NotZero(t, at)
	s.resetTo(id, s.run(id), at)
	s.until("it has begun anew", func(snap fleet.Snapshot) bool { return snap.Epoch > is.Epoch })
	require.Equal(t, drove, s.run(workflows.ScaleOutID(stays)), "a scale-out of a Ready instance was started")
}
