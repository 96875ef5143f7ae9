package workflows_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// Histories that a Temporal dev server recorded must replay with today's code: workflows that run survive the change of
// their worker's version only then. One that fails here asks for workflow.GetVersion around the change. Until the first
// release `make histories` may record them anew instead, and the CHANGELOG says that running workflows must end first.
func TestRecordedHistories(t *testing.T) {
	files, err := filepath.Glob("testdata/histories/*/*.json")
	require.NoError(t, err)
	types := map[string]int{}
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			var h history.History
			require.NoError(t, protojson.Unmarshal(text, &h))
			types[h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowType().GetName()]++
			replayer, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{
				DisableDeadlockDetection: true}) // which takes a busy machine for one
			require.NoError(t, err)
			for _, lane := range workflows.Lanes {
				workflows.RegisterWorkflows(replayer, lane)
			}
			started := h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes() // its id has the hub
			of := worker.ReplayWorkflowHistoryOptions{OriginalExecution: workflow.Execution{ID: started.GetWorkflowId()}}
			require.NoError(t, replayer.ReplayWorkflowHistoryWithOptions(nil, &h, of))
		})
	}
	for _, name := range []string{workflows.TypeNodeGroup, workflows.TypeProvider, workflows.TypePeering,
		workflows.TypeUnpeering,
		workflows.TypeScaleOut, workflows.TypeScaleIn, workflows.TypeUndo,
		workflows.TypeCompare} {
		require.NotZero(t, types[name], "no history of %s", name)
	}
}
