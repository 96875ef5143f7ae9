package workflows

import (
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Peering establishes or repairs a provider's peering within its budget, and reports the result to the provider entity.
// An operator cancels this workflow when a peering is stuck; the waiting attempts then choose another provider.
func Peering(ctx workflow.Context, in fleet.PeeringInput) error {
	executor(ctx) // onReset needs this record before any other event
	bounded, cancel := workflow.WithCancel(ctx)
	defer cancel()
	onReset(ctx, cancel) // the peering may no longer be needed; if it is, its provider starts it again after the failure
	options := making(bounded, "establish peering with "+in.Provider.ID)
	return reportPeering(ctx, in, run(options, activities.NameEstablish, in, nil))
}

// reportPeering reports the end of a peering's workflow if the activity has not reported it: a failure, a refusal or a
// cancellation.
func reportPeering(ctx workflow.Context, in fleet.PeeringInput, err error) error {
	if err == nil {
		return nil
	}
	out, _ := workflow.NewDisconnectedContext(ctx)
	provider := in.Provider.ID
	r := fleet.PeeringReport{Run: in.Run, Event: fleet.PeeringFailed, Failure: activities.FailureOf(err, provider)}
	if r.Refusing = activities.RefusalOf(err); r.Refusing != nil {
		r.Event = fleet.PeeringRefused
	}
	cancelled := ctx.Err() != nil
	if cancelled {
		r.Failure = fleet.NewFailure(fleet.CodeCancelled, provider, r.Failure.Stage,
			"the peering with provider "+provider+" was cancelled by an operator; last: "+r.Failure.Message)
	}
	report := activities.ReportInput{Provider: provider, Report: &r}
	if err := run(short(out, "tell"), activities.NameReport, report, nil); err != nil {
		return err
	}
	if cancelled {
		return temporal.NewCanceledError()
	}
	return err
}
