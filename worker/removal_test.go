package worker_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// slow is a backend. If the peering is in use again, its RemovePeering hangs until it is cancelled.
type slow struct{ backend.Backend }

func (s slow) RemovePeering(ctx context.Context, p fleet.Provider, report backend.Progress) error {
	err := s.Backend.RemovePeering(ctx, p, report)
	if errors.Is(err, backend.ErrInUse) {
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

// The removal of a peering (workflow unpeering/<id>) hangs. The provider's entity is terminated in the meantime. The
// removal does not interfere with the peering of the next node.
func TestRecoveredProviderEndsARunningRemoval(t *testing.T) {
	t.Parallel()
	s := newHubScene(t, 1).work(func(o *worker.Options) { o.Backend = slow{o.Backend} })
	s.knobs(0, sim.Knobs{Hang: backend.StageTenantGone})
	s.grow(1)
	s.release(s.allIn(fleet.Ready, 1).Instances[0].Name)
	s.allIn("", 0)
	s.provider(0, "is being removed", func(p fleet.ProviderSnapshot) bool { return p.Phase == fleet.Removing })
	s.isStatus(workflows.UnpeeringID(s.providers[0]), enums.WORKFLOW_EXECUTION_STATUS_RUNNING)
	require.NoError(t, s.temporal.TerminateWorkflow(s.ctx, s.hub.ID(workflows.ProviderID(s.providers[0])), "", "test"))
	s.grow(1)
	i := s.until("there is a verdict", func(snap fleet.Snapshot) bool {
		return len(snap.Instances) == 1 && (snap.Instances[0].Phase == fleet.Ready || snap.Instances[0].Phase == fleet.Failed)
	}).Instances[0]
	require.Equal(t, fleet.Ready, i.Phase, "%+v", i.Failure)
	require.Equal(t, 1, i.Attempt)
	require.Eventually(t, func() bool { // the recovering entity has ended it, or it ended before
		return s.status(workflows.UnpeeringID(s.providers[0])) != enums.WORKFLOW_EXECUTION_STATUS_RUNNING
	}, waitLimit, waitTick, "the removal ends")
	first := s.firstRun(0)
	s.provider(0, fmt.Sprintf("holds its node, and had to repair its peering once at most, from run %d", first),
		func(p fleet.ProviderSnapshot) bool {
			return p.Phase == fleet.Established && len(p.Holds) == 1 && p.Run <= first+4
		})
}

// firstRun returns the number of a provider's first peering run. This number depends on the start time of the entity.
func (s *scene) firstRun(n int) (run int) {
	s.t.Helper()
	history := s.temporal.GetWorkflowHistory(s.ctx, s.hub.ID(workflows.ProviderID(s.providers[n])), "", false,
		enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		e, err := history.Next()
		require.NoError(s.t, err)
		switch e.EventType {
		case enums.EVENT_TYPE_WORKFLOW_TASK_STARTED:
			run = int(e.EventTime.AsTime().UnixMicro())
		case enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
			return run
		}
	}
	return run
}
