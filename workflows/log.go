package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// logTransition writes the one line that each change of an instance's phase leaves.
func logTransition(ctx workflow.Context, group string, t fleet.Transition) {
	facts := []any{"group", group, "instance", t.Instance, "attempt", t.Attempt}
	if t.Provider != "" {
		facts = append(facts, "provider", t.Provider)
	}
	facts = append(facts, "from", string(t.From), "event", string(t.Event), "phase", string(t.To))
	workflow.GetLogger(ctx).Info("phase", append(facts, reason(t.Failure)...)...)
}

// logPeering is the same for a peering; its provider entity writes it.
func logPeering(ctx workflow.Context, provider string, t fleet.PeeringTransition) {
	facts := []any{"provider", provider, "from", string(t.From), "event", string(t.Event), "phase", string(t.To)}
	workflow.GetLogger(ctx).Info("peering phase", append(facts, reason(t.Failure)...)...)
}

func reason(f *fleet.Failure) []any {
	if f == nil {
		return nil
	}
	return []any{"code", string(f.Code), "failure", f.Message}
}
