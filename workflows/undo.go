package workflows

import (
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Undo removes the objects of a failed attempt: the node and the slice, and finally its hold. It never stops trying.
// If the provider is unreachable, it removes the objects when the provider answers again. It occupies no slot while
// it waits.
func Undo(ctx workflow.Context, in fleet.UndoInput) error {
	options := removing(ctx, "undo "+in.Attempt.ObjectName())
	err := run(options, activities.NameReturn, activities.ReturnInput{Attempt: in.Attempt}, nil)
	if activities.CalledOff(err) {
		return temporal.NewCanceledError()
	}
	return err
}
