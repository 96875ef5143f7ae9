package workflows

import (
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Peering establishes or repairs a provider's peering within its budget, and reports the result to the provider
// entity. An operator cancels this workflow when a peering is stuck; the attempts that wait for the peering then
// choose another provider.
func Peering(ctx workflow.Context, in fleet.PeeringInput) error {
	executor(ctx) // onReset needs this record before any other event
	bounded, cancel := workflow.WithCancel(ctx)
	defer cancel()
	onReset(ctx, cancel) // if the peering is still needed, its provider starts it again after this failure
	options := making(bounded, "establish peering with "+in.Provider.ID)
	return reportPeering(ctx, in, run(options, activities.NameEstablish, in, nil))
}

// reportPeering reports the failure, the refusal or the cancellation with which a peering's workflow ends. After a
// success it does nothing, because the activity has already reported the result.
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
