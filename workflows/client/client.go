// Package client is the typed access to the entities. It hides workflow ids, update names, operations and the mapping
// of errors. The gRPC server uses Groups; activities use Messages, Entities and Single.
package client

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// Temporal is the part of the SDK's client that this package uses.
type Temporal interface {
	UpdateWorkflow(ctx context.Context, options client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error)
	UpdateWithStartWorkflow(ctx context.Context,
		options client.UpdateWithStartWorkflowOptions) (client.WorkflowUpdateHandle, error)
	NewWithStartWorkflowOperation(options client.StartWorkflowOptions, workflow any,
		args ...any) client.WithStartWorkflowOperation
	ExecuteWorkflow(ctx context.Context, options client.StartWorkflowOptions, workflow any,
		args ...any) (client.WorkflowRun, error)
	SignalWithStartWorkflow(ctx context.Context, workflowID, signal string, arg any, options client.StartWorkflowOptions,
		workflow any, args ...any) (client.WorkflowRun, error)
	CancelWorkflow(ctx context.Context, workflowID, runID string) error
	TerminateWorkflow(ctx context.Context, workflowID, runID, reason string, details ...any) error
	ListWorkflow(ctx context.Context,
		request *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error)
	SignalWorkflow(ctx context.Context, workflowID, runID, signal string, arg any) error
	DescribeWorkflowExecution(ctx context.Context, workflowID,
		runID string) (*workflowservice.DescribeWorkflowExecutionResponse, error)
	DescribeWorkflow(ctx context.Context, workflowID, runID string) (*client.WorkflowExecutionDescription, error)
	QueryWorkflow(ctx context.Context, workflowID, runID, query string, args ...any) (converter.EncodedValue, error)
	DescribeTaskQueue(ctx context.Context, queue string,
		kind enums.TaskQueueType) (*workflowservice.DescribeTaskQueueResponse, error)
	GetWorkflowHistory(ctx context.Context, workflowID, runID string, longPoll bool,
		filter enums.HistoryEventFilterType) client.HistoryEventIterator
}

// These constants are the default deadline of an operation and the pause between retries.
const (
	// defaultDeadline bounds an operation whose caller has set no deadline.
	defaultDeadline = 10 * time.Second
	// retryInterval is the pause before a request is repeated to an entity that recovers or whose workflow task fails.
	retryInterval = 100 * time.Millisecond
)

// base contains the common parts of the typed clients.
type base struct {
	temporal  Temporal
	hub       workflows.Hub
	taskQueue string
	now       func() time.Time
	// offset is the last known difference between the workflows' clock and ours, in nanoseconds.
	offset atomic.Int64
	// cluster is the UID of this process's consumer cluster, once it is known.
	cluster atomic.Pointer[string]
}

func newBase(t Temporal, hub workflows.Hub, taskQueue string) base {
	return base{temporal: t, hub: hub, taskQueue: hub.TaskQueue(taskQueue), now: time.Now}
}

// errTaskFails means that the entity's workflow task fails. It wraps fleet.ErrUnavailable.
var errTaskFails = fmt.Errorf("its workflow task fails (%w)", fleet.ErrUnavailable)

// fromTemporal translates an error of Temporal into an error of this package's callers. If the error does not show
// whether the operation was executed (for example a passed deadline), it becomes fleet.ErrOutcomeUnknown.
func (b *base) fromTemporal(workflowID string, err error) error {
	if err == nil {
		return nil
	}
	var app *temporal.ApplicationError
	if errors.As(err, &app) {
		switch kind := fleet.RefusalKind(app.Type()); kind {
		case fleet.RefusedInvalid, fleet.RefusedMax, fleet.RefusedSpending, fleet.RefusedPrecondition, fleet.RefusedExpired,
			fleet.RefusedNotInitialised, fleet.RefusedOtherCluster:
			var at time.Time
			if app.HasDetails() && app.Details(&at) == nil {
				b.recordClock(at)
			}
			return fleet.Refuse(kind, app.Message())
		}
		return fmt.Errorf("%s: %w", workflowID, err)
	}
	var notFound *serviceerror.NotFound
	var notReady *serviceerror.WorkflowNotReady
	gone := deletedNamespace(err)
	switch {
	case gone != nil:
		return fmt.Errorf("%s: %w", workflowID, gone)
	case errors.As(err, &notFound):
		return fmt.Errorf("%s %w: %w", workflowID, fleet.ErrNotRunning, fleet.ErrUnavailable)
	case errors.As(err, &notReady):
		return fmt.Errorf("%s: %w, look at it in the Temporal UI: %w", workflowID, errTaskFails, err)
	default:
		return fmt.Errorf("%s: %w: %w", workflowID, fleet.ErrOutcomeUnknown, err)
	}
}

// noNamespace is the error of a deleted namespace. It matches fleet.ErrTemporal, because no entity can be read. It
// also matches fleet.ErrUnavailable, because nothing was changed.
type noNamespace struct {
	missing *serviceerror.NamespaceNotFound
}

func (n noNamespace) Unwrap() error { return n.missing }

func (n noNamespace) Error() string {
	return "Temporal answers, and has no namespace " + n.missing.Namespace + ": it was deleted; create it again with " +
		"liqo-autoscaler temporal setup, and the node groups are rebuilt from the objects that exist"
}

func (noNamespace) Is(target error) bool {
	return target == fleet.ErrTemporal || target == fleet.ErrUnavailable
}

// deletedNamespace returns a noNamespace if an error of Temporal reports that the namespace does not exist. It returns
// nil for any other error.
func deletedNamespace(err error) error {
	var missing *serviceerror.NamespaceNotFound
	if errors.As(err, &missing) {
		return noNamespace{missing}
	}
	return nil
}

// read decodes an entity's snapshot into out, and returns the memo that contains it. It needs no worker. All its errors
// match fleet.ErrUnavailable. The error for an entity that does not run also matches fleet.ErrNotRunning. The error for
// a missing snapshot is also a refusal with fleet.RefusedNotInitialised.
func (b *base) read(ctx context.Context, workflowID string, out any) (map[string]*common.Payload, error) {
	memo, err := b.memo(ctx, workflowID)
	if err != nil {
		return nil, err
	}
	payload, ok := memo[workflows.MemoSnapshot]
	if !ok {
		return nil, fmt.Errorf("%w: %w", fleet.Refuse(fleet.RefusedNotInitialised, workflowID+" has not recovered yet"),
			fleet.ErrUnavailable)
	}
	return memo, decodeOf(workflowID, payload, out)
}

// withoutDeadline is a context that ends when the wrapped context ends, but hides the wrapped context's deadline. The
// SDK gives a call only half of the time until a visible deadline, and does not retry the call. With withoutDeadline,
// a call may use the whole time.
type withoutDeadline struct{ context.Context }

// Deadline reports that the context has no deadline.
func (withoutDeadline) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }

// memo reads the memo of a running entity. It returns the same errors as read.
func (b *base) memo(ctx context.Context, workflowID string) (map[string]*common.Payload, error) {
	d, err := b.temporal.DescribeWorkflow(withoutDeadline{ctx}, workflowID, "")
	var notFound *serviceerror.NotFound
	if errors.As(err, &notFound) {
		return nil, fmt.Errorf("%s %w: %w", workflowID, fleet.ErrNotRunning, fleet.ErrUnavailable)
	}
	if gone := deletedNamespace(err); gone != nil {
		return nil, fmt.Errorf("describe %s: %w", workflowID, gone)
	}
	if err != nil {
		return nil, fmt.Errorf("describe %s: %w: %w: %w", workflowID, fleet.ErrTemporal, fleet.ErrUnavailable, err)
	}
	if d.Status != enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return nil, fmt.Errorf("%s %w, it is %s: %w", workflowID, fleet.ErrNotRunning, d.Status, fleet.ErrUnavailable)
	}
	return d.Memo.GetFields(), nil
}

func decodeOf(workflowID string, payload *common.Payload, out any) error {
	if err := workflows.DecodeMemo(payload, out); err != nil {
		return fmt.Errorf("decode the memo of %s: %w: %w", workflowID, fleet.ErrUnavailable, err)
	}
	return nil
}

// signal sends a signal to a running workflow.
func (b *base) signal(ctx context.Context, id, name string, arg any) error {
	return b.fromTemporal(id, b.temporal.SignalWorkflow(withoutDeadline{ctx}, id, "", name, arg))
}

// signalProvider sends a signal to a provider's entity, and starts the entity if it does not run.
func (b *base) signalProvider(ctx context.Context, provider, name string, arg any) error {
	id := b.provider(provider)
	_, err := b.temporal.SignalWithStartWorkflow(withoutDeadline{ctx}, id, name, arg, *b.entity(id, "provider "+provider),
		workflows.TypeProvider, workflows.NewEntity(provider))
	return b.fromTemporal(id, err)
}

func (b *base) group(name string) (id string)    { return b.hub.ID(workflows.NodeGroupID(name)) }
func (b *base) provider(name string) (id string) { return b.hub.ID(workflows.ProviderID(name)) }

// entity returns the options to start an entity that does not run.
func (b *base) entity(id, summary string) *client.StartWorkflowOptions {
	return &client.StartWorkflowOptions{
		ID: id, TaskQueue: b.taskQueue, WorkflowTaskTimeout: workflows.WorkflowTaskTimeout, StaticSummary: summary,
		WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		WorkflowIDReusePolicy:    enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
	}
}
