package client

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.temporal.io/sdk/converter"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// Waiting describes the step in progress of a workflow: the activity's name, and the stage that it waits for according
// to its last heartbeat. It is empty when no step is in progress.
type Waiting struct {
	Step, Stage, Message string
}

// String returns the stage with the message, or "" when no heartbeat has reported one.
func (w Waiting) String() string {
	if w.Stage == "" || w.Message == "" {
		return w.Stage
	}
	return w.Stage + ": " + w.Message
}

// Waits reads the step that an instance waits for now: the activity of its driver, or the making of the peering for
// which the driver waits. It needs no worker. It returns fleet.ErrUnavailable when no driver runs.
func (g *Groups) Waits(ctx context.Context, i fleet.InstanceView) (w Waiting, err error) {
	switch {
	case i.Phase.Growing():
		w, err = g.waits(ctx, workflows.ScaleOutID(i.Name))
	case i.Phase.Shrinking():
		w, err = g.waits(ctx, workflows.ScaleInID(i.Name))
	}
	if err != nil || w.Step != "" || i.Phase != fleet.Peering || i.Provider == "" {
		return w, err
	}
	w, err = g.waits(ctx, workflows.PeeringID(i.Provider))
	if errors.Is(err, fleet.ErrNotRunning) || err == nil && w.Step == "" {
		w, err = g.removal(ctx, i.Provider)
	}
	return w, err
}

// removal reads the step in progress of the removal of a provider's previous peering. It returns zero when no removal
// is in progress.
func (b *base) removal(ctx context.Context, provider string) (Waiting, error) {
	w, err := b.waits(ctx, workflows.UnpeeringID(provider))
	if errors.Is(err, fleet.ErrNotRunning) {
		return Waiting{}, nil
	}
	if w.Step != "" {
		w.Stage = strings.TrimSuffix("the removal of the previous peering: "+w.Stage, ": ")
	}
	return w, err
}

// Removal reads the step in progress of the removal of a provider's previous peering. It returns zero when no removal
// is in progress.
func (e *Entities) Removal(ctx context.Context, provider string) (Waiting, error) {
	return e.removal(ctx, provider)
}

func (b *base) waits(ctx context.Context, workflow string) (w Waiting, err error) {
	id := b.hub.ID(workflow)
	d, err := b.temporal.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		return w, b.fromTemporal(id, err)
	}
	for _, a := range d.GetPendingActivities() {
		w = Waiting{Step: a.GetActivityType().GetName()}
		if a.GetHeartbeatDetails() == nil {
			continue
		}
		var beat activities.Beat
		if err := converter.GetDefaultDataConverter().FromPayloads(a.GetHeartbeatDetails(), &beat); err != nil {
			return w, fmt.Errorf("decode the heartbeat of %s: %w", id, err)
		}
		w.Stage, w.Message = beat.Stage, beat.Message
		if last := a.GetLastFailure().GetMessage(); last != "" && (w.Message == "" || !strings.Contains(last, w.Message)) {
			w.Message = strings.TrimPrefix(w.Message+"; before: "+last, "; ")
		}
		if beat.PausedBecause != "" {
			w.Message = strings.TrimSuffix("its budget is paused: "+beat.PausedBecause+"; "+w.Message, "; ")
		}
	}
	return w, nil
}
