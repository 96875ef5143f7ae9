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

// registered are the workflows that a worker registers, see worker.RegisterWorkflows.
var registered = map[string]any{
	workflows.TypeNodeGroup: workflows.Cluster("").NodeGroup, workflows.TypeProvider: workflows.Provider,
	workflows.TypePeering: workflows.Peering, workflows.TypeUnpeering: workflows.Unpeering,
	workflows.TypeScaleOut: workflows.ScaleOut, workflows.TypeScaleIn: workflows.ScaleIn,
	workflows.TypeUndo: workflows.Undo, workflows.TypeHub: workflows.RunHub,
}

// Histories that a Temporal dev server recorded must replay with the current code. Otherwise a new worker version
// breaks running workflows. A change that fails here needs a new version of the rules, see CurrentRules. Until the
// first release, `make histories` records the histories again instead.
func TestRecordedHistoriesReplay(t *testing.T) {
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
				DisableDeadlockDetection: true}) // the detector would fail on a busy machine
			require.NoError(t, err)
			for name, w := range registered {
				replayer.RegisterWorkflowWithOptions(w, workflow.RegisterOptions{Name: name})
			}
			started := h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes() // the id begins with the hub
			of := worker.ReplayWorkflowHistoryOptions{OriginalExecution: workflow.Execution{ID: started.GetWorkflowId()}}
			require.NoError(t, replayer.ReplayWorkflowHistoryWithOptions(nil, &h, of))
		})
	}
	for name := range registered {
		require.NotZero(t, types[name], "no history of %s", name)
	}
}
