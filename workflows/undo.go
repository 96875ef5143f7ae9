package workflows

import (
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// Undo takes a failed attempt back: node, slice and hold. It never gives up, so that a dead provider's remains are taken
// away when it comes back, and it holds nobody up meanwhile.
func Undo(ctx workflow.Context, in UndoInput) error {
	l, at := newListing(ctx), in.Attempt
	show := func(phase fleet.Phase) {
		l.show(ctx, listed{group: at.Group, instance: at.Instance, provider: at.Provider.ID, phase: string(phase)})
	}
	show(fleet.Unpeering)
	ctx = forever(ctx, "undo "+at.ObjectName())
	if err := workflow.ExecuteActivity(ctx, activities.NameUnpeer, activities.UnpeerInput{Attempt: at}).Get(ctx, nil); err != nil {
		return err
	}
	show(fleet.Released)
	return nil
}

// Peering makes or repairs a provider's peering, within fleet.EstablishBound, and reports to the provider entity. It is
// what an operator cancels when a peering is stuck: everyone who waits for it then goes elsewhere.
func Peering(ctx workflow.Context, in PeeringInput) error {
	listPeering(ctx, in)
	out, _ := workflow.NewDisconnectedContext(ctx)
	bounded, cancel := workflow.WithCancel(ctx)
	defer cancel()
	onReset(ctx, cancel) // nobody may want it any longer; a provider that does takes it for a failure
	done := false
	workflow.Go(ctx, func(g workflow.Context) {
		if ok, err := workflow.AwaitWithTimeout(g, establishBound, func() bool { return done }); err == nil && !ok {
			cancel()
		}
	})
	err := workflow.ExecuteActivity(step(bounded, "establish peering with "+in.Provider.ID), activities.NameEstablishPeering,
		activities.PeeringInput{Provider: in.Provider}).Get(bounded, nil)
	done = true
	return reportPeering(out, in, err, ctx.Err() != nil)
}

// Unpeering removes a provider's peering, however long it takes, and reports to the provider entity.
func Unpeering(ctx workflow.Context, in PeeringInput) error {
	listPeering(ctx, in)
	out, _ := workflow.NewDisconnectedContext(ctx)
	err := workflow.ExecuteActivity(forever(ctx, "remove peering with "+in.Provider.ID), activities.NameRemovePeering,
		activities.PeeringInput{Provider: in.Provider}).Get(ctx, nil)
	return reportPeering(out, in, err, ctx.Err() != nil)
}

// listPeering shows the phase that the provider was in when it started this run: what came of it is the provider's to show.
func listPeering(ctx workflow.Context, in PeeringInput) {
	newListing(ctx).show(ctx, listed{provider: in.Provider.ID, phase: string(in.Phase)})
}

func reportPeering(out workflow.Context, in PeeringInput, err error, cancelled bool) error {
	r := peeringReport(in, err, cancelled)
	if sig := workflow.SignalExternalWorkflow(out, here(out, ProviderID(in.Provider.ID)), "", SignalReport, r).Get(out, nil); sig != nil {
		workflow.GetLogger(out).Warn("the provider entity does not take the report", "provider", in.Provider.ID, "error", sig)
	}
	if cancelled && err != nil {
		return temporal.NewCanceledError()
	}
	return err
}
