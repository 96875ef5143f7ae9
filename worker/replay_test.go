package worker_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// record makes the tests below write their histories for workflows.TestRecordedHistoriesReplay. `make histories` sets
// it.
var record = flag.Bool("record", false, "write histories to workflows/testdata/histories")

// recorded maps the name of each test to the name of the scene whose history is kept. Together they cover every
// workflow, with the outcomes done, failed, cancelled and undone.
var recorded = map[string]string{
	"TestLifeOfAnInstance":                                 "life",
	"TestTimeoutNamesTheStageOfThePeering":                 "failed",
	"TestInstancesLeaveACancelledPeering":                  "peering-cancelled",
	"TestCancelledScaleInIsStuckUntilRetried":              "scale-in-stuck",
	"TestDeletedSliceOrVirtualNodeIsLost/slice":            "lost",
	"TestRecoveredGroupStopsScaleOutOfReleasedInstance":    "recovered",
	"TestFailover/refuses_the_slice":                       "refused",
	"TestContinueAsNewAppliesEachOperationOnce":            "continued",
	"TestRecoveredProviderKeepsThePeering":                 "kept", // with rounds of the observer
	"TestInstanceReleasedInEachPhaseLeavesNothing/joining": "released-while-joining",
}

// secretless searches a whole history, including packed states, for the scene's credentials (I10).
func (s *scene) secretless(id string, h *history.History) {
	text, err := protojson.Marshal(h)
	require.NoError(s.t, err)
	for _, p := range s.providers {
		require.False(s.t, says(text, s.secret(p)), "the credentials of %s are in the history of %s", p, id)
	}
}

// says reports whether the secret is in the text, or in an encoded part of the text. It decodes JSON strings, base64
// and gzip.
func says(text []byte, secret string) bool {
	if bytes.Contains(text, []byte(secret)) {
		return true
	}
	if z, err := gzip.NewReader(bytes.NewReader(text)); err == nil {
		plain, err := io.ReadAll(z)
		return err != nil || says(plain, secret)
	}
	var v any
	if json.Unmarshal(text, &v) != nil {
		return false
	}
	found := false
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, of := range v {
				walk(of)
			}
		case []any:
			for _, of := range v {
				walk(of)
			}
		case string:
			if packed, err := base64.StdEncoding.DecodeString(v); err == nil && len(packed) > 0 {
				found = found || says(packed, secret)
			}
		}
	}
	walk(v)
	return found
}

func TestSecretsInEncodedTextAreFound(t *testing.T) {
	state, err := fleet.Encode(map[string]string{"why": "token s3cr3t-1"})
	require.NoError(t, err)
	input, err := json.Marshal(workflows.EntityInput{Name: "x", State: state})
	require.NoError(t, err)
	payloads := &common.Payloads{Payloads: []*common.Payload{{Data: input}}}
	text, err := protojson.Marshal(payloads)
	require.NoError(t, err)
	require.True(t, says(text, "s3cr3t-1"))
	require.False(t, says(text, "s3cr3t-2"))
}

// oneTimer requires that the run has at most one timer at any time. A timer that is no longer needed must be cancelled,
// because otherwise each wait would add an event to a long history.
func (s *scene) oneTimer(id string, h *history.History) {
	open := map[int64]bool{}
	for _, e := range h.GetEvents() {
		switch e.GetEventType() {
		case enums.EVENT_TYPE_TIMER_STARTED:
			open[e.GetEventId()] = true
		case enums.EVENT_TYPE_TIMER_FIRED:
			delete(open, e.GetTimerFiredEventAttributes().GetStartedEventId())
		case enums.EVENT_TYPE_TIMER_CANCELED:
			delete(open, e.GetTimerCanceledEventAttributes().GetStartedEventId())
		}
		require.LessOrEqual(s.t, len(open), 1, "%s has more than one timer at event %d", id, e.GetEventId())
	}
}

// keptRuns is the number of histories that a scene keeps of each kind of workflow. It keeps the newest.
const keptRuns = 2

// keep writes a history to a file if the flag record is set.
func (s *scene) keep(h *history.History) {
	scene, ok := recorded[s.t.Name()]
	if !*record || !ok {
		return
	}
	kind := h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowType().GetName()
	if s.kept == nil {
		s.kept = map[string]int{}
	}
	if s.kept[kind]++; s.kept[kind] > keptRuns {
		return
	}
	dir := filepath.Join("..", "workflows", "testdata", "histories", scene)
	require.NoError(s.t, os.MkdirAll(dir, 0o755))
	text, err := protojson.Marshal(h)
	require.NoError(s.t, err)
	require.NoError(s.t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d.json", kind, s.kept[kind])), text, 0o644))
}

// replay replays the history of every run of every workflow of the scene with the current code. The code must repeat
// past decisions exactly, because otherwise a worker that takes over a workflow would fail.
func (s *scene) replay() {
	if s.t.Failed() {
		return
	}
	replayer, err := sdkworker.NewWorkflowReplayerWithOptions(sdkworker.WorkflowReplayerOptions{Interceptors: s.tracing,
		DisableDeadlockDetection: true}) // otherwise a busy machine would count as a deadlock
	require.NoError(s.t, err)
	for _, lane := range workflows.Lanes {
		worker.RegisterWorkflows(replayer, lane, "")
	}
	replayed := 0
	for _, lane := range workflows.Lanes {
		queue := lane.Queue(s.hub.TaskQueue(s.queue))
		request := &workflowservice.ListWorkflowExecutionsRequest{Query: fmt.Sprintf("TaskQueue = '%s'", queue)}
		for {
			page, err := s.temporal.ListWorkflow(s.ctx, request)
			require.NoError(s.t, err)
			for _, e := range page.GetExecutions() {
				s.replayRun(replayer, e.GetExecution().GetWorkflowId(), e.GetExecution().GetRunId())
				replayed++
			}
			if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
				break
			}
		}
	}
	require.NotZero(s.t, replayed)
}

// fewestEvents is the number of events of a run whose first task has begun. A run with fewer events has made no
// decision.
const fewestEvents = 3

func (s *scene) replayRun(replayer sdkworker.WorkflowReplayer, id, run string) {
	var h history.History
	events := s.temporal.GetWorkflowHistory(s.ctx, id, run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		require.NoError(s.t, err, "read the history of %s, run %s", id, run)
		h.Events = append(h.Events, e)
	}
	s.secretless(id, &h)
	s.oneTimer(id, &h)
	if len(h.Events) < fewestEvents {
		return
	}
	s.keep(&h)
	// The history of a run after a reset contains the id of the run before the reset.
	of := sdkworker.ReplayWorkflowHistoryOptions{OriginalExecution: workflow.Execution{ID: id, RunID: run}}
	require.NoError(s.t, replayer.ReplayWorkflowHistoryWithOptions(nil, &h, of), "replay %s, run %s", id, run)
}
