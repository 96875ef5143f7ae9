package client

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/failure/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// starter records the workflows that it is called to start, and returns the error err.
type starter struct {
	Temporal
	err     error
	options client.StartWorkflowOptions
	name    any
	args    []any
}

func (s *starter) ExecuteWorkflow(_ context.Context, o client.StartWorkflowOptions, name any,
	args ...any) (client.WorkflowRun, error) {
	s.options, s.name, s.args = o, name, args
	return nil, s.err
}

// Start returns AlreadyStarted in two cases: the driver runs, or the group has not read the driver's last view yet. The
// id of a driver can be used again only after a failure. The id of a peering can be used again when the peering is
// closed.
func TestStartReportsARunningDriver(t *testing.T) {
	started := serviceerror.NewWorkflowExecutionAlreadyStarted("it runs", "", "")
	driver := activities.Start{Type: "ScaleOut", ID: "scale-out/a-t0-1", Queue: "q-drivers", Driver: &fleet.DriverInput{},
		Bound: time.Hour}
	peering := activities.Start{Type: "Peering", ID: "peering/milan", Queue: "q-drivers", Peering: &fleet.PeeringInput{},
		Again: true}
	for name, c := range map[string]struct {
		start   activities.Start
		err     error
		reuse   enums.WorkflowIdReusePolicy
		input   any
		already bool
		fails   error
	}{
		"driver": {
			start: driver, reuse: enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY, input: fleet.DriverInput{},
		},
		"first driver": {
			start: activities.Start{Type: "ScaleOut", ID: "scale-out/a-t0-1", Queue: "q-drivers", Driver: &fleet.DriverInput{},
				Once: true}, reuse: enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE, input: fleet.DriverInput{},
		},
		"driver that is there": {
			start: driver, err: started, reuse: enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY,
			input: fleet.DriverInput{}, already: true,
		},
		"peering": {
			start: peering, reuse: enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE, input: &fleet.PeeringInput{},
		},
		"no answer": {
			start: peering, err: context.DeadlineExceeded, reuse: enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
			input: &fleet.PeeringInput{}, fails: fleet.ErrOutcomeUnknown,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &starter{err: c.err}
			already, err := NewSingle(s, "", "", false).Start(t.Context(), c.start)
			require.ErrorIs(t, err, c.fails)
			require.Equal(t, c.already, already)
			require.Equal(t, c.reuse, s.options.WorkflowIDReusePolicy)
			require.Equal(t, c.start.Bound, s.options.WorkflowRunTimeout)
			require.Equal(t, enums.WORKFLOW_ID_CONFLICT_POLICY_FAIL, s.options.WorkflowIDConflictPolicy)
			require.True(t, s.options.WorkflowExecutionErrorWhenAlreadyStarted, "the SDK hides it otherwise")
			require.Equal(t, []any{c.start.Type, c.start.ID, "q-drivers"}, []any{s.name, s.options.ID, s.options.TaskQueue})
			require.Equal(t, []any{c.input}, s.args)
		})
	}
}

// Temporal refuses a start with search attributes that are missing in the namespace.
func TestStartSetsAttributesWhereTheyAreEnabled(t *testing.T) {
	w := activities.Start{Type: "Undo", Undo: &fleet.UndoInput{}, Attributes: map[string]string{"LiqoGroup": "a",
		"LiqoProvider": ""}}
	for _, enabled := range []bool{true, false} {
		s := &starter{}
		_, err := NewSingle(s, "", "", enabled).Start(t.Context(), w)
		require.NoError(t, err)
		require.Equal(t, enabled, s.options.TypedSearchAttributes.Size() == 1, "an empty one is left out")
		_, has := s.options.TypedSearchAttributes.GetKeyword(temporal.NewSearchAttributeKeyKeyword("LiqoGroup"))
		require.Equal(t, enabled, has)
	}
}

// single is a fake Temporal with one workflow.
type single struct {
	Temporal
	answer *workflowservice.DescribeWorkflowExecutionResponse
	err    error
	last   *history.HistoryEvent // of a closed run; nil: the history cannot be read
}

func (s single) GetWorkflowHistory(context.Context, string, string, bool,
	enums.HistoryEventFilterType) client.HistoryEventIterator {
	if s.last == nil {
		return &iterator{end: serviceerror.NewUnavailable("try again")}
	}
	return &iterator{left: []*history.HistoryEvent{s.last}}
}

// failedAs returns the last event of a run that failed with an error of this type.
func failedAs(kind string) *history.HistoryEvent {
	return &history.HistoryEvent{Attributes: &history.HistoryEvent_WorkflowExecutionFailedEventAttributes{
		WorkflowExecutionFailedEventAttributes: &history.WorkflowExecutionFailedEventAttributes{Failure: &failure.Failure{
			FailureInfo: &failure.Failure_ApplicationFailureInfo{
				ApplicationFailureInfo: &failure.ApplicationFailureInfo{Type: kind},
			},
		}},
	}}
}

func (s single) DescribeWorkflowExecution(context.Context, string,
	string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return s.answer, s.err
}

func (s single) SignalWorkflow(context.Context, string, string, string, any) error { return s.err }

func (s single) CancelWorkflow(context.Context, string, string) error { return s.err }

func (s single) TerminateWorkflow(context.Context, string, string, string, ...any) error {
	return s.err
}

func TestStatusShowsFailingTasks(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	describe := func(status enums.WorkflowExecutionStatus, attempt int32,
		since time.Duration) *workflowservice.DescribeWorkflowExecutionResponse {
		return &workflowservice.DescribeWorkflowExecutionResponse{
			WorkflowExecutionInfo: &workflow.WorkflowExecutionInfo{Status: status},
			PendingWorkflowTask: &workflow.PendingWorkflowTaskInfo{
				Attempt: attempt, OriginalScheduledTime: timestamppb.New(now.Add(-since)),
			},
		}
	}
	const running, completed, failed = enums.WORKFLOW_EXECUTION_STATUS_RUNNING, enums.WORKFLOW_EXECUTION_STATUS_COMPLETED,
		enums.WORKFLOW_EXECUTION_STATUS_FAILED
	closed := func(s enums.WorkflowExecutionStatus) *workflowservice.DescribeWorkflowExecutionResponse {
		info := &workflow.WorkflowExecutionInfo{Status: s}
		return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: info}
	}
	for name, c := range map[string]struct {
		single
		want  activities.Status
		fails bool
	}{
		"runs": {
			single: single{answer: describe(running, 1, time.Hour)}, want: activities.Status{Running: true},
		},
		"fails a while": {
			single: single{answer: describe(running, 9, 9*time.Minute)}, want: activities.Status{Running: true},
		},
		"fails four times": {
			single: single{answer: describe(running, 4, time.Hour)}, want: activities.Status{Running: true},
		},
		"fails and fails": {
			single: single{answer: describe(running, 5, 10*time.Minute)}, want: activities.Status{Running: true, Failing: true},
		},
		"completed": {single: single{answer: closed(completed)}, want: activities.Status{Completed: true}},
		"failed":    {single: single{answer: closed(failed), last: failedAs("Stopped")}},
		"failed after its last view": {
			single: single{answer: closed(failed), last: failedAs(workflows.TypeInstanceFailed)},
			want:   activities.Status{Completed: true},
		},
		"failed for an unknown reason": {single: single{answer: closed(failed)}, fails: true},
		"unknown":                      {single: single{err: serviceerror.NewNotFound("workflow not found")}},
		"no answer":                    {single: single{err: serviceerror.NewUnavailable("try again")}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := NewSingle(c.single, "", "", false)
			s.now = func() time.Time { return now }
			got, err := s.Status(t.Context(), "scale-out/a-t0-1")
			require.Equal(t, c.fails, err != nil, "%v", err)
			require.Equal(t, c.want, got)
		})
	}
}

func TestCallsOnAClosedWorkflow(t *testing.T) {
	gone := NewSingle(single{err: serviceerror.NewNotFound("workflow execution already completed")}, "", "", false)
	require.NoError(t, gone.Cancel(t.Context(), "peering/milan"))
	require.NoError(t, gone.Terminate(t.Context(), "peering/milan", "why"))
	require.ErrorIs(t, gone.Signal(t.Context(), activities.Signal{ID: "scale-out/a-t0-1"}), fleet.ErrNotRunning)
	silent := NewSingle(single{err: errors.New("no answer")}, "", "", false)
	require.ErrorIs(t, silent.Cancel(t.Context(), "peering/milan"), fleet.ErrOutcomeUnknown)
	require.ErrorIs(t, silent.Terminate(t.Context(), "peering/milan", "why"), fleet.ErrOutcomeUnknown)
}
