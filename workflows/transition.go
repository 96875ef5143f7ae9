package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// logTransition writes the one line that each change of an instance's phase leaves: the node group writes it, whose Ledger
// has the last word, and drivers only at debug level. An event that moved nothing is for debugging, too.
func logTransition(ctx workflow.Context, owner bool, inst *fleet.Instance, from fleet.Phase, ev fleet.Event, move fleet.Move) {
	facts := []any{"group", inst.Spec.ID, "instance", inst.Name, "attempt", inst.Attempt}
	if inst.Offer != nil {
		facts = append(facts, "provider", inst.Offer.Provider)
	}
	facts = append(facts, "from", string(from), "event", string(ev.Kind), "phase", string(inst.Phase))
	if ev.Step != fleet.StepNone {
		facts = append(facts, "step", string(ev.Step))
	}
	log := workflow.GetLogger(ctx)
	say := log.Debug
	if owner && (inst.Phase != from || move.Stuck) {
		say = log.Info
	}
	say("phase", append(facts, reason(ev.Failure)...)...)
}

// logPeering is the same for a peering; its provider entity writes it.
func logPeering(ctx workflow.Context, p *fleet.ProviderState, from fleet.PeeringPhase, ev fleet.PeeringEvent, f *fleet.Failure) {
	if p.Phase == from {
		return
	}
	facts := []any{"provider", p.ID, "from", string(from), "event", string(ev), "phase", string(p.Phase)}
	workflow.GetLogger(ctx).Info("peering phase", append(facts, reason(f)...)...)
}

func reason(f *fleet.Failure) []any {
	if f == nil {
		return nil
	}
	return []any{"code", string(f.Code), "failure", f.Message}
}
