package client

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// Single starts, signals and describes single workflows, by their full ids.
type Single struct {
	base
	attributes bool // whether Start sets search attributes
	absent     absent
}

// NewSingle returns the Single of a hub. taskQueue is the argument of Hub.TaskQueue. If the parameter attributes is
// true, Start sets search attributes, and the namespace must have these attributes.
func NewSingle(t Temporal, hub workflows.Hub, taskQueue string, attributes bool) *Single {
	return &Single{base: newBase(t, hub, taskQueue), attributes: attributes}
}

// Start starts a workflow. The result `already` is true if a workflow with this id runs, or has completed and must not
// run again.
func (s *Single) Start(ctx context.Context, w activities.Start) (already bool, err error) {
	options := client.StartWorkflowOptions{
		ID: w.ID, TaskQueue: w.Queue, WorkflowTaskTimeout: workflows.WorkflowTaskTimeout, StaticSummary: w.Summary,
		WorkflowRunTimeout:                       w.Bound,
		WorkflowIDReusePolicy:                    enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY,
		WorkflowIDConflictPolicy:                 enums.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
	}
	switch {
	case w.Again:
		options.WorkflowIDReusePolicy = enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE
	case w.Once:
		options.WorkflowIDReusePolicy = enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE
	}
	if s.attributes {
		options.TypedSearchAttributes = keywords(w.Attributes)
	}
	_, err = s.temporal.ExecuteWorkflow(withoutDeadline{inTrace(ctx, w.Trace)}, options, w.Type, w.Input())
	var started *serviceerror.WorkflowExecutionAlreadyStarted
	if errors.As(err, &started) {
		return true, nil
	}
	return false, s.fromTemporal(w.ID, err)
}

func keywords(values map[string]string) temporal.SearchAttributes {
	var updates []temporal.SearchAttributeUpdate
	for name, value := range values {
		if value != "" {
			updates = append(updates, temporal.NewSearchAttributeKeyKeyword(name).ValueSet(value))
		}
	}
	return temporal.NewSearchAttributes(updates...)
}

// Signal sends a signal to a workflow. Error: fleet.ErrNotRunning when it is closed.
func (s *Single) Signal(ctx context.Context, to activities.Signal) error {
	return s.signal(ctx, to.ID, to.Name, to.Payload())
}

// A driver cannot continue if its workflow task has failed failingAttempts times in a row, and for at least
// failingFor.
const (
	failingAttempts = 5
	failingFor      = 10 * time.Minute
)

// Status describes a workflow. A workflow that Temporal does not know counts as closed.
func (s *Single) Status(ctx context.Context, id string) (activities.Status, error) {
	d, err := s.temporal.DescribeWorkflowExecution(ctx, id, "")
	if err = s.fromTemporal(id, err); errors.Is(err, fleet.ErrNotRunning) {
		return activities.Status{}, nil
	}
	if err != nil {
		return activities.Status{}, err
	}
	status := d.GetWorkflowExecutionInfo().GetStatus()
	running := status == enums.WORKFLOW_EXECUTION_STATUS_RUNNING
	orphaned := false
	if running {
		if orphaned, err = s.orphaned(ctx, d.GetWorkflowExecutionInfo()); err != nil {
			return activities.Status{}, s.fromTemporal(id, err)
		}
	}
	task := d.GetPendingWorkflowTask()
	began := task.GetOriginalScheduledTime().AsTime()
	completed := status == enums.WORKFLOW_EXECUTION_STATUS_COMPLETED
	if status == enums.WORKFLOW_EXECUTION_STATUS_FAILED {
		completed, err = s.instanceFailed(ctx, id, d.GetWorkflowExecutionInfo().GetExecution().GetRunId())
		if err != nil {
			return activities.Status{}, err
		}
	}
	return activities.Status{
		Running:   running,
		Completed: completed,
		Failing:   task.GetAttempt() >= failingAttempts && s.now().Sub(began) >= failingFor,
		Orphaned:  orphaned,
	}, nil
}

// instanceFailed reports whether a run has closed because its instance has failed, according to its last event.
func (s *Single) instanceFailed(ctx context.Context, id, run string) (bool, error) {
	last := s.temporal.GetWorkflowHistory(ctx, id, run, false, enums.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
	for last.HasNext() {
		e, err := last.Next()
		if err != nil {
			return false, s.fromTemporal(id, err)
		}
		failure := e.GetWorkflowExecutionFailedEventAttributes().GetFailure()
		if failure.GetApplicationFailureInfo().GetType() == workflows.TypeInstanceFailed {
			return true, nil
		}
	}
	return false, nil
}

// Cancel requests the cancellation of a workflow. It returns nil if the workflow does not run.
func (s *Single) Cancel(ctx context.Context, id string) error {
	return s.unlessGone(s.fromTemporal(id, s.temporal.CancelWorkflow(ctx, id, "")))
}

// Terminate ends a workflow. It returns nil if the workflow does not run.
func (s *Single) Terminate(ctx context.Context, id, reason string) error {
	return s.unlessGone(s.fromTemporal(id, s.temporal.TerminateWorkflow(ctx, id, "", reason)))
}

func (s *Single) unlessGone(err error) error {
	if errors.Is(err, fleet.ErrNotRunning) {
		return nil
	}
	return err
}
