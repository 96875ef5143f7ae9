package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// recoveredKeep is how long a provider that recovered from what exists removes nothing: holds may not have come back yet.
const recoveredKeep = 5 * time.Minute

// recover rebuilds holds and phase from what exists.
func (p *provider) recover(ctx workflow.Context) error {
	p.endRemoval(ctx)
	var found activities.RecoveredProvider
	if err := workflow.ExecuteActivity(forever(ctx, "recover provider "+p.state.ID), activities.NameRecoverProvider, p.state.ID).Get(ctx, &found); err != nil {
		return fmt.Errorf("recover provider %s: %w", p.state.ID, err)
	}
	now := workflow.Now(ctx)
	for _, f := range backend.Unpack(found.Attempts) {
		h := fleet.Hold{Key: f.Attempt.ObjectName(), State: fleet.HoldGranted, Since: now}
		if f.Booking != nil {
			h.Shape = f.Booking.Spec.Shape
		}
		p.state.Holds[h.Key] = h
		p.state.Phase = fleet.Established
	}
	if found.Peering != nil {
		p.state.Offer = &fleet.Offer{
			Name: p.state.ID, Provider: p.state.ID, Credentials: found.Peering.Credentials, LingerSeconds: found.LingerSeconds, Unpeer: found.Unpeer,
		}
		p.state.KeepUntil = now.Add(recoveredKeep)
		if p.state.Phase == fleet.Absent {
			p.state.Phase = fleet.Lingering
		}
		workflow.GetLogger(ctx).Warn("provider recovered from its objects", "provider", p.state.ID, "holds", len(found.Attempts))
	}
	p.driven = p.state.Phase
	return nil
}

// endRemoval cancels the removal that an entity before this one may have begun: it would take the peering away from under
// the holds that this one grants, and fight with the peering/<id> that makes it again.
func (p *provider) endRemoval(ctx workflow.Context) {
	if workflow.GetVersion(ctx, "end-removal", workflow.DefaultVersion, 1) == workflow.DefaultVersion {
		return
	}
	if err := workflow.RequestCancelExternalWorkflow(ctx, here(ctx, UnpeeringID(p.state.ID)), "").Get(ctx, nil); err == nil {
		workflow.GetLogger(ctx).Warn("the removal that an earlier entity began is cancelled", "provider", p.state.ID)
	}
}
