package client

import (
	"context"
	"fmt"
	"strings"

	"go.temporal.io/sdk/converter"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// Waits reads what an instance in a step waits for, from the last heartbeat of the workflow that drives it; empty when it is
// in none, or has said nothing yet. Needs no worker. fleet.ErrUnavailable when nothing drives it.
func (g *Groups) Waits(ctx context.Context, i fleet.InstanceView) (stage, message string, err error) {
	switch {
	case i.Phase.Growing():
		return g.waits(ctx, g.hub.ID(workflows.ScaleOutID(i.Name)))
	case i.Phase.Shrinking():
		return g.waits(ctx, g.hub.ID(workflows.ScaleInID(i.Name)))
	}
	return "", "", nil
}

func (b *base) waits(ctx context.Context, id string) (stage, message string, err error) {
	d, err := b.temporal.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		return "", "", b.wall(id, err)
	}
	for _, a := range d.GetPendingActivities() {
		if a.GetHeartbeatDetails() == nil {
			continue
		}
		if err := converter.GetDefaultDataConverter().FromPayloads(a.GetHeartbeatDetails(), &stage, &message); err != nil {
			return "", "", fmt.Errorf("decode the heartbeat of %s: %w", id, err)
		}
		if last := a.GetLastFailure().GetMessage(); last != "" && !strings.Contains(last, message) { // it has only just begun again
			message += "; before: " + last
		}
	}
	return stage, message, nil
}
