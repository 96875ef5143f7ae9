package workflows

import (
	"time"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// abandoned are the options of a child that outlives whoever started it, continue-as-new included. Its id may be used
// again once it is closed: a stuck instance is resumed under the same id.
func abandoned(ctx workflow.Context, id, summary string) workflow.ChildWorkflowOptions {
	return workflow.ChildWorkflowOptions{
		WorkflowID:            here(ctx, id),
		StaticSummary:         summary,
		ParentClosePolicy:     enums.PARENT_CLOSE_POLICY_ABANDON,
		WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WaitForCancellation:   true,
	}
}

// start starts an abandoned child and returns once it runs. already says that one of this id ran before. The child is not
// cancelled with its parent: the SDK passes a context's cancellation on to children whatever their parent close policy.
func start(ctx workflow.Context, workflowType, id, summary string, in any) (already bool, err error) {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	ctx = workflow.WithChildOptions(ctx, abandoned(ctx, id, summary))
	err = workflow.ExecuteChildWorkflow(ctx, workflowType, in).GetChildWorkflowExecution().Get(ctx, nil)
	if temporal.IsWorkflowExecutionAlreadyStartedError(err) {
		return true, nil
	}
	return false, err
}

func peeringReport(in PeeringInput, err error, cancelled bool) PeeringReport {
	r := PeeringReport{Run: in.Run}
	switch {
	case err == nil:
		r.Event = fleet.PeeringDone
	case applicationType(err) == activities.TypeInUse:
		r.Event = fleet.PeeringInUse
	default:
		r.Event = fleet.PeeringFailed
		r.Failure = activities.FailureOf(err, in.Provider.ID)
		if cancelled {
			r.Failure = fleet.NewFailure(fleet.CodeCancelled, in.Provider.ID, r.Failure.Stage,
				"the peering with provider "+in.Provider.ID+" was cancelled by an operator; last: "+r.Failure.Message)
		}
	}
	return r
}

// awaitUntil waits for the condition or the time; a zero time is never due.
func awaitUntil(ctx workflow.Context, due time.Time, cond func() bool) error {
	if due.IsZero() {
		return workflow.Await(ctx, cond)
	}
	_, err := workflow.AwaitWithTimeout(ctx, max(due.Sub(workflow.Now(ctx)), time.Millisecond), cond)
	return err
}
