package operate

import (
	"context"

	"k8s.io/client-go/util/workqueue"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/show"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

// waits sets the phase of each instance, and the event for which the instance waits.
func waits(ctx context.Context, groups *flow.Groups, instances []show.Instance) {
	workqueue.ParallelizeUntil(context.Background(), stepsAtOnce, len(instances), func(n int) {
		i := &instances[n]
		phase, waits := underWay(ctx, groups, fleet.InstanceView{Name: i.Name, Phase: i.Phase, Provider: i.Provider})
		if i.Phase = phase; waits != "" {
			i.Waits = "waiting for " + waits
		}
	})
}

// stepsAtOnce is the maximum number of concurrent reads of instances' steps.
const stepsAtOnce = 20

// underWay returns the phase of an instance, and the event for which its present step waits. While an instance's
// scale-out workflow runs the step Join, the group still publishes the phase Peering; underWay then returns Joining.
// If the step is unknown, underWay returns only the published phase.
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
