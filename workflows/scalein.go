package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/driver"
)

// ScaleIn drives one instance from Draining to Released. When the drain budget expires, ScaleIn no longer waits for
// pods. It never stops trying to return the slice. If an operator cancels it, the instance is stuck until the next
// DeleteNodes or the signal "retry".
func ScaleIn(ctx workflow.Context, in fleet.DriverInput) (Outcome, error) {
	return drive(ctx, in, map[fleet.Step]activity{fleet.StepDrain: drainNode, fleet.StepReturn: returnNode})
}

func drainNode(ctx workflow.Context, d *driver.Driver, _ fleet.View, _ *fleet.Event) error {
	at := d.Instance.AttemptRef()
	in := activities.DrainInput{Attempt: at, Force: d.Instance.Force, Budget: d.Spec.Budgets.WithDefaults().Drain}
	return run(removing(ctx, "drain "+at.ObjectName()), activities.NameDrain, in, nil)
}

// returnNode removes the node and its slice, and releases its hold.
func returnNode(ctx workflow.Context, d *driver.Driver, view fleet.View, _ *fleet.Event) error {
	at := d.Instance.AttemptRef()
	options := removing(ctx, "return "+at.ObjectName()+" to "+at.Provider.ID)
	return run(options, activities.NameReturn, activities.ReturnInput{Attempt: at, View: &view}, nil)
}
