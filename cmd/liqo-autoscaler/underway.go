package main

import (
	"context"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// stepsAtOnce is how many instances are asked at a time what they have under way.
const stepsAtOnce = 20

// underWay is where an instance is by the step that it has under way, and what that waits for, as far as it can be
// told: steps come and go. A group does not publish Joining.
func underWay(ctx context.Context, groups *flow.Groups, i fleet.InstanceView) (fleet.Phase, string) {
	w, err := groups.Waits(ctx, i)
	switch {
	case err != nil:
		return i.Phase, ""
	case i.Phase == fleet.Peering && w.Step == activities.NameJoin:
		return fleet.Joining, w.String()
	default:
		return i.Phase, w.String()
	}
}
