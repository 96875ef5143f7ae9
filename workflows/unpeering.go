package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// Unpeering removes a provider's peering, however long it takes, and reports to the provider entity.
func Unpeering(ctx workflow.Context, in fleet.PeeringInput) error {
	options := removing(ctx, "remove peering with "+in.Provider.ID)
	err := workflow.ExecuteActivity(options, activities.NameRemovePeering, in).Get(ctx, nil)
	return reportPeering(ctx, in, err)
}
