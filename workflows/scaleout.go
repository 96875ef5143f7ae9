package workflows

import (
	"slices"

	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/choice"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/driver"
)

// ScaleOut drives one instance from Pending to Ready or Failed. It sends the instance's state (a view) to its group
// before each request for a hold, and at its end. If an operator cancels it, the instance fails, and the group undoes
// the attempt.
func ScaleOut(ctx workflow.Context, in fleet.DriverInput) (Outcome, error) {
	var s scaleOut
	return drive(ctx, in, map[fleet.Step]activity{
		fleet.StepDiscover: s.discover, fleet.StepSelect: s.choose, fleet.StepJoin: joinNode,
	})
}

// scaleOut keeps the discovered offers for the choice between them.
type scaleOut struct{ found activities.DiscoverOutput }

func (s *scaleOut) discover(ctx workflow.Context, d *driver.Driver, _ fleet.View, _ *fleet.Event) error {
	i := d.Instance
	in := activities.DiscoverInput{Spec: d.Spec, Instance: i.Name, Refused: i.Refused, Taken: d.Taken,
		Failures: d.Failures, Rank: choice.Rank{Ahead: d.Ahead, Name: d.Spec.ID}}
	s.found = activities.DiscoverOutput{}
	// The bound makes the instance fail if its budget expires while no worker can read the offers.
	options := shortFor(ctx, "discover offers for "+i.Name, i.Deadline().Sub(workflow.Now(ctx)))
	return run(options, activities.NameDiscover, in, &s.found)
}

// choose selects an offer from the shortlist, in the workflow task that receives the result of the discovery.
func (s *scaleOut) choose(ctx workflow.Context, d *driver.Driver, view fleet.View, ev *fleet.Event) error {
	var out activities.SelectOutput
	in := activities.SelectInput{Spec: d.Spec, Found: s.found, Refused: slices.Clone(d.Instance.Refused), View: view}
	if err := workflow.ExecuteLocalActivity(choosing(ctx), activities.NameSelect, in).Get(ctx, &out); err != nil {
		return err
	}
	ev.Offer, ev.Failure = out.Offer, out.Failure
	switch {
	case out.Offer != nil:
	case out.Decision.Full:
		ev.Kind = fleet.Again
	default:
		ev.Kind = fleet.Refused
	}
	if last := d.Instance.Failure; out.Offer == nil && last != nil && out.Failure != nil && !out.Decision.Full {
		text := last.Message + "; then " + out.Failure.Message // explains why no offer fits any longer
		ev.Failure = fleet.NewFailure(last.Code, last.Provider, last.Stage, text)
	}
	return nil
}

// joinNode waits until the virtual node is Ready.
func joinNode(ctx workflow.Context, d *driver.Driver, view fleet.View, _ *fleet.Event) error {
	i := d.Instance
	at := i.AttemptRef()
	in := activities.JoinInput{View: view, Node: backend.NodeSpec{
		Attempt: at, Shape: d.Spec.Shape, Class: i.Offer.Class, Labels: d.Spec.NodeLabels(), Taints: d.Spec.NodeTaints(),
		Booking: fleet.Booking{Spec: d.Spec, BookedAt: i.BookedAt, Hourly: i.Offer.Hourly},
	}}
	return run(join(ctx, "wait for virtual node "+at.ObjectName()), activities.NameJoin, in, nil)
}
