package operate

import (
	"context"

	"k8s.io/client-go/util/workqueue"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/show"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

// waits fills in what instances have under way.
func waits(ctx context.Context, groups *flow.Groups, instances []show.Instance) {
	workqueue.ParallelizeUntil(context.Background(), stepsAtOnce, len(instances), func(n int) {
		i := &instances[n]
		phase, waits := underWay(ctx, groups, fleet.InstanceView{Name: i.Name, Phase: i.Phase, Provider: i.Provider})
		if i.Phase = phase; waits != "" {
			i.Waits = "waiting for " + waits
		}
	})
}

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
