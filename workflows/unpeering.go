package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Unpeering removes a provider's peering without a time limit, and reports its end to the provider entity.
func Unpeering(ctx workflow.Context, in fleet.PeeringInput) error {
	options := removing(ctx, "remove peering with "+in.Provider.ID)
	return reportPeering(ctx, in, run(options, activities.NameRemovePeering, in, nil))
}
