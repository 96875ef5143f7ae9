package chaos

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/devserver"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// lasting lists the workflows that may still run when no instance and no object of ours exists. These are the
// entities.
var lasting = []string{workflows.TypeNodeGroup, workflows.TypeProvider, workflows.TypeHub}

// failing lists the workflows that may fail. These are peerings whose provider fails, and drivers that their group
// stops.
var failing = []string{workflows.TypePeering, workflows.TypeUnpeering, workflows.TypeScaleOut, workflows.TypeScaleIn}

var drivers = map[string]bool{workflows.TypeScaleOut: true, workflows.TypeScaleIn: true}

// stopped is the error type of a driver that its group has stopped, or that an operator has reset. A failure of another
// type is a defect, unless triedAll accepts it.
const stopped = "Stopped"

// harmless lists the causes for which Temporal fails a workflow task although the worker's answer was correct.
var harmless = []enums.WorkflowTaskFailedCause{
	enums.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND, enums.WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND,
	enums.WORKFLOW_TASK_FAILED_CAUSE_RESET_STICKY_TASK_QUEUE, enums.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_UPDATE,
	enums.WORKFLOW_TASK_FAILED_CAUSE_FAILOVER_CLOSE_COMMAND, enums.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW,
}

// staleStream is the SDK's error for a task whose events the server delivered incompletely, for example after an update
// whose worker has died. The next try receives all events (temporalio/temporal issue 7741, open). When the error
// persists, the pending task shows it.
const staleStream = "premature end of stream"

// stoppedTask is the SDK's error for a task during which the process received no CPU time, for example because the
// monkey stopped it. A real deadlock also fails the next try.
const stoppedTask = "TMPRL1101"

// listAll lists every run of every workflow.
func (s *stack) listAll(ctx context.Context) ([]*workflowpb.WorkflowExecutionInfo, error) {
	var all []*workflowpb.WorkflowExecutionInfo
	request := &workflowservice.ListWorkflowExecutionsRequest{Namespace: s.namespace, PageSize: 200}
	for {
		resp, err := s.api.ListWorkflow(ctx, request)
		if err != nil {
			return nil, err
		}
		all = append(all, resp.GetExecutions()...)
		if request.NextPageToken = resp.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return all, nil
		}
	}
}

// closed returns an error while any workflow that must end is still running.
func (s *stack) closed(ctx context.Context) error {
	all, err := s.listAll(ctx)
	if err != nil {
		return err
	}
	for _, w := range all {
		if w.GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING && !slices.Contains(lasting, w.GetType().GetName()) {
			return fmt.Errorf("%s still runs", w.GetExecution().GetWorkflowId())
		}
	}
	return nil
}

// forget has the same effect as Temporal's timeout after a day. It ends scale-outs that wait for an answer that will
// never arrive, because their group and their provider have forgotten them. A group forgets a scale-out only after an
// operator has ended the group's workflow.
func (r *run) forget(ctx context.Context) (ended int) {
	all, err := r.s.listAll(ctx)
	if err != nil {
		r.m.violate("%v", err)
	}
	for _, w := range all {
		id := w.GetExecution().GetWorkflowId()
		if w.GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING || !r.m.forgets(id) {
			continue
		}
		d, err := r.s.api.DescribeWorkflowExecution(ctx, id, "")
		if err == nil && len(d.GetPendingActivities()) == 0 {
			err = r.s.api.TerminateWorkflow(ctx, id, "", "forgotten")
			ended++
		}
		if err != nil {
			r.m.violate("end %s: %v", id, err)
		}
	}
	return ended
}

// triedAll reports whether a scale-out ended without a node for a reason outside the product. Either the providers were
// full for its whole budget, or its message names each provider and why the provider could not be used. The monkey
// makes providers refuse, hang and vanish, so all providers can fail for one instance. A message that leaves a provider
// out is a defect, because the scale-out has not tried this provider.
func triedAll(kind, message string, providers []string) bool {
	code, reasons, _ := strings.Cut(message, ": ")
	switch {
	case kind != workflows.TypeInstanceFailed:
		return false
	case fleet.Code(code) == fleet.CodeNoCapacity:
		return true
	case !fleet.Code(code).Row().Blames:
		return false
	}
	_, reasons, _ = strings.Cut(reasons, "; then ")
	return !slices.ContainsFunc(providers, func(p string) bool { return !strings.Contains(reasons, p+": ") })
}

func TestScaleOutMayFailOnlyWhenEachProviderFailed(t *testing.T) {
	three := []string{"p1", "p2", "p3"}
	for message, want := range map[string]bool{
		"NoCapacity: no provider for group red: p1: full": true,
		"Refused: provider p2 says: no; then no provider for group red: p1: an attempt of this instance on this provider " +
			"has failed; " +
			"p2: an attempt of this instance on this provider has failed; file: offer p3: identify provider of " +
			"p3.kubeconfig: unreachable": true,
		"Refused: provider p3: no; then no provider for group red: p1: an attempt of this instance on this provider " +
			"has failed; p2: full": false,
		"Refused: p1: p2: p3: no":    false,
		"Internal: p1: ; p2: ; p3: ": false,
		"":                           false,
	} {
		if got := triedAll(workflows.TypeInstanceFailed, message, three); got != want {
			t.Errorf("%q: may fail: %t, want %t", message, got, want)
		}
		if triedAll("Panic", message, three) {
			t.Errorf("%q may be a panic", message)
		}
	}
}

// histories checks every run: no run has failed because of a defect, no task fails repeatedly, and each run replays.
// It returns the number of runs and the number of runs that continued as new.
func (s *stack) histories(ctx context.Context, violate func(string, ...any)) (runs, continued int, err error) {
	all, err := s.listAll(ctx)
	if err != nil {
		return 0, 0, err
	}
	for _, w := range all {
		id, run, kind := w.GetExecution().GetWorkflowId(), w.GetExecution().GetRunId(), w.GetType().GetName()
		switch status := w.GetStatus(); {
		case status == enums.WORKFLOW_EXECUTION_STATUS_FAILED && !slices.Contains(failing, kind),
			status == enums.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
			violate("%s (run %s) is %s", id, run, status)
		case status == enums.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW:
			continued++
		case status == enums.WORKFLOW_EXECUTION_STATUS_RUNNING:
			d, err := s.api.DescribeWorkflowExecution(ctx, id, run)
			if err != nil {
				return 0, 0, err
			}
			if task := d.GetPendingWorkflowTask(); task.GetAttempt() > 3 {
				violate("%s (run %s): its workflow task is at attempt %d", id, run, task.GetAttempt())
			}
		}
		h, err := s.history(ctx, id, run)
		if err != nil {
			return 0, 0, err
		}
		for _, e := range h.GetEvents() {
			ended := e.GetWorkflowExecutionFailedEventAttributes().GetFailure()
			if kindOf := ended.GetApplicationFailureInfo().GetType(); ended != nil && drivers[kind] && kindOf != stopped &&
				!triedAll(kindOf, ended.GetMessage(), s.providers) {
				violate("%s (run %s) has failed: %s %s", id, run, kindOf, ended.GetMessage())
			}
			failed := e.GetWorkflowTaskFailedEventAttributes()
			if failed != nil && !slices.Contains(harmless, failed.GetCause()) &&
				!strings.Contains(failed.GetFailure().GetMessage(), staleStream) &&
				!strings.Contains(failed.GetFailure().GetMessage(), stoppedTask) {
				violate("%s (run %s): a workflow task failed, %s: %s", id, run, failed.GetCause(), failed.GetFailure().GetMessage())
			}
		}
		if w.GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_TERMINATED {
			if h = decided(h); len(h.GetEvents()) == 0 {
				continue
			}
		}
		replayer, err := sdkworker.NewWorkflowReplayerWithOptions(s.replays)
		if err != nil {
			return 0, 0, err
		}
		for _, lane := range workflows.Lanes {
			worker.RegisterWorkflows(replayer, lane, "")
		}
		of := sdkworker.ReplayWorkflowHistoryOptions{OriginalExecution: workflow.Execution{ID: id, RunID: run}}
		if err := replayer.ReplayWorkflowHistoryWithOptions(devserver.Quiet(), h, of); err != nil {
			violate("%s (run %s) does not replay: %v", id, run, err)
		}
	}
	return len(all), continued, nil
}

func (s *stack) history(ctx context.Context, id, run string) (*history.History, error) {
	var h history.History
	events := s.api.GetWorkflowHistory(ctx, id, run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			return nil, fmt.Errorf("history of %s: %w", id, err)
		}
		h.Events = append(h.Events, e)
	}
	return &h, nil
}

// decided returns the part of a history that tasks have processed. A terminated run ends with events that no task has
// processed, and a replay would process these events too.
func decided(h *history.History) *history.History {
	end := 0
	for n, e := range h.GetEvents() {
		if e.GetWorkflowTaskCompletedEventAttributes() != nil {
			end = n + 1
		} else if n == end && slices.Contains(commands, e.GetEventType()) {
			end = n + 1
		}
	}
	return &history.History{Events: h.GetEvents()[:end]}
}

// commands lists the types of the events that Temporal writes right after the completion of a workflow task.
var commands = []enums.EventType{
	enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED, enums.EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED,
	enums.EVENT_TYPE_TIMER_STARTED,
	enums.EVENT_TYPE_TIMER_CANCELED, enums.EVENT_TYPE_MARKER_RECORDED, enums.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES,
	enums.EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED, enums.EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED,
	enums.EVENT_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED,
	enums.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED,
	enums.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED, enums.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED,
}
