package workflows

import (
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Undo takes a failed attempt back: node, slice, and last its hold. It never gives up, so that a dead provider's
// remains are taken away when it comes back; it holds no slot while it waits.
func Undo(ctx workflow.Context, in fleet.UndoInput) error {
	options := removing(ctx, "undo "+in.Attempt.ObjectName())
	err := run(options, activities.NameReturn, activities.ReturnInput{Attempt: in.Attempt}, nil)
	if activities.CalledOff(err) {
		return temporal.NewCanceledError()
	}
	return err
}
