package worker_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// record says that the scenes below leave their histories for workflows.TestRecordedHistories; `make histories` sets it.
var record = flag.Bool("record", false, "write histories to workflows/testdata/histories")

// recorded are the scenes whose histories are kept, by test: between them every workflow, done, failed, cancelled and undone.
var recorded = map[string]string{
	"TestLifeOfAnInstance":                               "life",
	"TestStepOutOfTimeNamesWhatThePeeringWaitsFor":       "failed",
	"TestCancelledPeeringGoesElsewhere":                  "peering-cancelled",
	"TestCancelledScaleInIsStuckUntilAskedAgain":         "scale-in-stuck",
	"TestDeletedSliceOrVirtualNodeIsLost/slice":          "lost",
	"TestRecoveredGroupEndsTheScaleOutOfWhatItGivesBack": "recovered",
	"TestFailover/refuses_the_slice":                     "refused",
	"TestContinueAsNewLosesAndDoublesNothing":            "continued",
	"TestRecoveredProviderKeepsItsPolicy":                "kept",
	"TestAskedBackInEveryPhase/joining":                  "asked-back",
}

// keep writes a history down, when asked to.
func (s *scene) keep(id string, h *history.History) {
	scene, ok := recorded[s.t.Name()]
	if !*record || !ok {
		return
	}
	dir := filepath.Join("..", "workflows", "testdata", "histories", scene)
	require.NoError(s.t, os.MkdirAll(dir, 0o755))
	text, err := protojson.Marshal(h)
	require.NoError(s.t, err)
	require.NoError(s.t, os.WriteFile(filepath.Join(dir, strings.ReplaceAll(id, "/", "_")+".json"), text, 0o644))
}

// replay runs the history of every workflow of the scene once more through today's code: what decided once must decide
// the same again, or a worker that takes over would fail; also one that finds the search attributes registered, or not.
func (s *scene) replay() {
	if s.t.Failed() {
		return
	}
	with, without := sdkworker.NewWorkflowReplayer(), sdkworker.NewWorkflowReplayer()
	workflows.RegisterWorkflows(with, func() bool { return true })
	workflows.RegisterWorkflows(without, func() bool { return false })
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
		id = s.hub.ID(id)
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
			s.keep(id, &h)
			again := proto.CloneOf(&h) // a replay writes into what it reads
			// One that was reset has the id of the run before it in its history.
			of := sdkworker.ReplayWorkflowHistoryOptions{OriginalExecution: workflow.Execution{ID: id, RunID: s.run(id)}}
			require.NoError(s.t, with.ReplayWorkflowHistoryWithOptions(nil, &h, of), "replay %s", id)
			require.NoError(s.t, without.ReplayWorkflowHistoryWithOptions(nil, again, of), "replay %s without search attributes", id)
		}
	}
	require.NotZero(s.t, replayed)
}
