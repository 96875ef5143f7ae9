package worker_test

import (
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// replay runs the history of every workflow of the scene once more through today's code: what decided once must decide
// the same again, or a worker that takes over would fail.
func (s *scene) replay() {
	if s.t.Failed() {
		return
	}
	r := sdkworker.NewWorkflowReplayer()
	for name, w := range map[string]any{
		workflows.TypeNodeGroup: workflows.NodeGroup, workflows.TypeProvider: workflows.Provider, workflows.TypePeering: workflows.Peering,
		workflows.TypeUnpeering: workflows.Unpeering, workflows.TypeScaleOut: workflows.ScaleOut, workflows.TypeScaleIn: workflows.ScaleIn,
		workflows.TypeUndo: workflows.Undo,
	} {
		r.RegisterWorkflowWithOptions(w, workflow.RegisterOptions{Name: name})
	}
	ids := []string{workflows.NodeGroupID(s.spec.ID)}
	for _, p := range s.providers {
		ids = append(ids, workflows.ProviderID(p), workflows.PeeringID(p), workflows.UnpeeringID(p))
	}
	for seq := range 4 {
		name := s.spec.ID + "-" + s.snapshot().Epoch + "-" + string(rune('1'+seq))
		ids = append(ids, workflows.ScaleOutID(name), workflows.ScaleInID(name), workflows.UndoID(name, 1))
	}
	replayed := 0
	for _, id := range ids {
		var h history.History
		events := s.temporal.GetWorkflowHistory(s.ctx, id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for events.HasNext() {
			e, err := events.Next()
			if err != nil {
				break // no such workflow in this scene
			}
			h.Events = append(h.Events, e)
		}
		if len(h.Events) > 0 {
			replayed++
			require.NoError(s.t, r.ReplayWorkflowHistory(nil, &h), "replay %s", id)
		}
	}
	require.NotZero(s.t, replayed)
}
