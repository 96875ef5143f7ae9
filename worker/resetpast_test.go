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

// An operator resets an ended run of a group to its last task, in which it continued as new: the group does not
// continue with the state of that time.
func TestResetToTheTaskThatContinuedAsNewBeginsAnew(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1).shortRuns().work()
	id := workflows.NodeGroupID(s.spec.ID)
	first := s.run(id)
	s.grow(1)
	s.allIn(fleet.Ready, 1)
	require.Eventually(t, func() bool { return s.run(id) != first }, waitLimit, waitTick, "it continues as new")
	s.grow(1)
	is := s.allIn(fleet.Ready, 2)

	quiet, length := 0, int64(0) // a later signal would be detected
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
	kept := s.until("it has begun anew", func(snap fleet.Snapshot) bool { return snap.Epoch > is.Epoch })
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

// An operator resets a group to a moment in which it was starting drivers: it starts no driver of the past. The
// scale-out was cancelled since then, so its id may be used again.
func TestResetGroupStartsNoDriverOfThePast(t *testing.T) {
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
	s.until("it has begun anew", func(snap fleet.Snapshot) bool { return snap.Epoch > epoch })
	s.configure() // it has recovered, and completed its later work
	require.Equal(t, before, s.run(workflows.ScaleOutID(name)), "a scale-out that ended was started again")
	require.Empty(t, s.snapshot().Instances)
}
