package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// Drivers, undo and peerings are started by activities, many at once, and never as children: those cost their parent
// events at every continue-as-new and every close. An id is used again only after a failure, but for peerings and undo.

func startDriver(ctx workflow.Context, kind fleet.DriverKind, in fleet.DriverInput) *activities.Start {
	s := &activities.Start{
		Type: TypeScaleOut, ID: here(ctx, DriverID(kind, in.Instance.Name)), Queue: queue(ctx, LaneDrivers), Driver: &in,
		Summary:    "scale out " + in.Instance.Name,
		Attributes: map[string]string{AttributeGroup: in.Spec.ID, AttributeInstance: in.Instance.Name},
	}
	if kind == fleet.ScaleOut {
		s.Bound = forgottenAfter
	} else {
		s.Type, s.Summary = TypeScaleIn, "scale in "+in.Instance.Name
		s.Attributes[AttributeProvider] = in.Instance.Provider()
	}
	return s
}

func startUndo(ctx workflow.Context, at fleet.Attempt) *activities.Start {
	return &activities.Start{
		Type: TypeUndo, ID: here(ctx, UndoID(at.Instance, at.Number)), Queue: queue(ctx, LaneDrivers),
		Undo: &fleet.UndoInput{Attempt: at}, Summary: "undo " + at.ObjectName() + " on " + at.Provider.ID, Again: true,
		Attributes: map[string]string{
			AttributeGroup: at.Group, AttributeInstance: at.Instance, AttributeProvider: at.Provider.ID,
		},
	}
}

func startPeering(ctx workflow.Context, name, id string, in fleet.PeeringInput) *activities.Start {
	return &activities.Start{
		Type: name, ID: here(ctx, id), Queue: queue(ctx, LaneDrivers), Peering: &in, Summary: name + " " + in.Provider.ID,
		Again: true, Attributes: map[string]string{AttributeProvider: in.Provider.ID},
	}
}

func signal(ctx workflow.Context, id, name string, arg any) *activities.Signal {
	s := &activities.Signal{ID: here(ctx, id), Name: name}
	switch a := arg.(type) {
	case *fleet.Order:
		s.Order = a
	case *fleet.Answer:
		s.Answer = a
	}
	return s
}
