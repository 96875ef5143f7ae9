package workflows

import (
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Peering makes or repairs a provider's peering, within its budget, and reports to the provider entity. It is what an
// operator cancels when a peering is stuck: everyone who waits for it then goes elsewhere.
func Peering(ctx workflow.Context, in fleet.PeeringInput) error {
	executor(ctx) // recorded before anything else, for onReset
	bounded, cancel := workflow.WithCancel(ctx)
	defer cancel()
	onReset(ctx, cancel) // nobody may want it any longer; a provider that does takes it for a failure
	options := making(bounded, "establish peering with "+in.Provider.ID)
	return reportPeering(ctx, in, run(options, activities.NameEstablish, in, nil))
}

// reportPeering tells what the activity has not told: it reports the end that it reached.
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
	tell := activities.ReportInput{Provider: provider, Report: &r}
	if err := run(short(out, "tell"), activities.NameReport, tell, nil); err != nil {
		return err
	}
	if cancelled {
		return temporal.NewCanceledError()
	}
	return err
}
