package worker_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// A run of a group has ended with a continue-as-new in its last task. An operator resets the run to this task. The
// group does not continue with the state of that time.
func TestResetToContinueAsNewStartsANewEpoch(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1).shortRuns().work()
	id := workflows.NodeGroupID(s.spec.ID)
	first := s.run(id)
	s.grow(1)
	s.allIn(fleet.Ready, 1)
	require.Eventually(t, func() bool { return s.run(id) != first }, waitLimit, waitTick, "it continues as new")
	s.grow(1)
	is := s.allIn(fleet.Ready, 2)

	quiet, length := 0, int64(0) // a later signal would show that the state is old
	require.Eventually(t, func() bool {
		d, err := s.temporal.DescribeWorkflowExecution(s.ctx, id, "")
		if now := d.GetWorkflowExecutionInfo().GetHistoryLength(); err != nil || now != length {
			quiet, length = 0, now
		}
		quiet++
		return quiet > 20
	}, waitLimit, waitTick)

	last := s.lastTask(id, first, nil)
	s.resetTo(id, first, last, enums.RESET_REAPPLY_EXCLUDE_TYPE_SIGNAL, enums.RESET_REAPPLY_EXCLUDE_TYPE_UPDATE)
	kept := s.until("it has started a new epoch", func(snap fleet.Snapshot) bool { return snap.Epoch > is.Epoch })
	require.Equal(t, 2, kept.Target)
}

// lastTask returns the event that completed the last task of the run before the event that pick selects.
func (s *scene) lastTask(id, run string, pick func(*history.HistoryEvent) bool) (last int64) {
	s.t.Helper()
	events := s.temporal.GetWorkflowHistory(s.ctx, id, run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		require.NoError(s.t, err)
		if pick != nil && last != 0 && pick(e) {
			return last
		}
		if e.EventType == enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			last = e.EventId
		}
	}
	return last
}

// A group was starting drivers, and an operator resets it to this moment. The group does not start these drivers
// again. The scale-out has been cancelled since then, so Temporal would accept its workflow id again.
func TestResetGroupStartsNoEarlierDriver(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1).work()
	id := workflows.NodeGroupID(s.spec.ID)
	s.knobs(0, sim.Knobs{Hang: backend.StageVirtualKubelet})
	name := s.grow(1).Instances[0].Name
	s.counts("the slice is granted", func(c sim.Counts) bool { return c.RemoteSlices == 1 })
	require.NoError(t, s.temporal.CancelWorkflow(s.ctx, workflows.ScaleOutID(name), ""))
	s.allIn(fleet.Failed, 1)
	s.release(name)
	epoch := s.allIn("", 0).Epoch
	s.empty()
	s.knobs(0, sim.Knobs{})
	before := s.run(workflows.ScaleOutID(name))

	task := s.lastTask(id, "", func(e *history.HistoryEvent) bool { return scheduled(activities.NameDeliver)(e) })
	s.resetTo(id, s.run(id), task, enums.RESET_REAPPLY_EXCLUDE_TYPE_SIGNAL, enums.RESET_REAPPLY_EXCLUDE_TYPE_UPDATE)
	s.until("it has started a new epoch", func(snap fleet.Snapshot) bool { return snap.Epoch > epoch })
	s.configure() // the group has recovered and completed its later work
	require.Equal(t, before, s.run(workflows.ScaleOutID(name)), "a scale-out that ended was started again")
	require.Empty(t, s.snapshot().Instances)
}
