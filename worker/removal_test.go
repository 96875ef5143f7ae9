package worker_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// A provider's entity is lost while unpeering/<id> hangs, as after an upgrade: the next node's peering is not fought over.
func TestRecoveredProviderEndsTheRemovalUnderWay(t *testing.T) {
	t.Parallel()
	s := newSceneOf(t, newID(), "edge", 1).work()
	s.knobs(0, sim.Knobs{Hang: backend.StageTenantGone})
	s.grow(1)
	s.release(s.allIn(fleet.Ready, 1).Instances[0].Name)
	s.allIn("", 0)
	s.provider(0, "is being removed", func(p fleet.ProviderState) bool { return p.Phase == fleet.Removing })
	s.isStatus(workflows.UnpeeringID(s.providers[0]), enums.WORKFLOW_EXECUTION_STATUS_RUNNING)
	require.NoError(t, s.temporal.TerminateWorkflow(s.ctx, s.hub.ID(workflows.ProviderID(s.providers[0])), "", "test"))
	s.grow(1)
	i := s.until("there is a verdict", func(snap fleet.Snapshot) bool {
		return len(snap.Instances) == 1 && (snap.Instances[0].Phase == fleet.Ready || snap.Instances[0].Phase == fleet.Failed)
	}).Instances[0]
	require.Equal(t, fleet.Ready, i.Phase, "%+v", i.Failure)
	require.Equal(t, 1, i.Attempt)
	s.isStatus(workflows.UnpeeringID(s.providers[0]), enums.WORKFLOW_EXECUTION_STATUS_CANCELED)
	s.provider(0, "holds its node", func(p fleet.ProviderState) bool { return p.Phase == fleet.Established && p.Live() == 1 })
}
