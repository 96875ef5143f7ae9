package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// ScaleOut moves one instance from Discovering to Ready or Failed: the table between its ends. It reports every event to
// its node group and closes early when CA asks the instance back. An operator may cancel it: what the attempt made is
// then undone and the instance fails.
func ScaleOut(ctx workflow.Context, in DriveInput) error {
	e := newEngine(ctx, in.Instance)
	var found *activities.DiscoverOutput
	for e.inst.Phase.Growing() && !e.left && !e.reset {
		var ev fleet.Event
		switch e.inst.Phase {
		case fleet.Discovering:
			ev = e.discover(&found)
		case fleet.Selecting:
			ev = e.choose(&found)
		case fleet.Peering:
			ev = e.peer()
		case fleet.Joining:
			ev = e.join()
		}
		if err := e.apply(ev); err != nil {
			return err
		}
	}
	return e.close()
}

func (e *engine) discover(found **activities.DiscoverOutput) fleet.Event {
	return e.run("discover who lends", func(ctx workflow.Context) (fleet.Event, error) {
		*found = &activities.DiscoverOutput{}
		err := workflow.ExecuteActivity(ctx, activities.NameDiscover, activities.DiscoverInput{Instance: e.inst}).Get(ctx, *found)
		return fleet.Event{}, err
	})
}

// choose selects from the shortlist. One that was started in Selecting, because the scale-out before it was terminated,
// has none yet and looks again first.
func (e *engine) choose(found **activities.DiscoverOutput) fleet.Event {
	if *found == nil {
		if ev := e.discover(found); ev.Kind != fleet.Done {
			return ev
		}
	}
	return e.run("select a provider", func(ctx workflow.Context) (fleet.Event, error) {
		var out activities.SelectOutput
		err := workflow.ExecuteActivity(ctx, activities.NameSelect, activities.SelectInput{Instance: e.inst, Found: **found}).Get(ctx, &out)
		if err == nil && out.Offer == nil {
			return fleet.Event{Kind: fleet.Refused, Failure: e.nothingFits(out.Failure)}, nil
		}
		return fleet.Event{Offer: out.Offer}, err
	})
}

// nothingFits keeps the failure of the last attempt, if there was one: it is why there is no offer left.
func (e *engine) nothingFits(f *fleet.Failure) *fleet.Failure {
	if last := e.inst.Failure; last != nil && f != nil {
		return fleet.NewFailure(last.Code, last.Provider, last.Stage, f.Message)
	}
	return f
}

func (e *engine) peer() fleet.Event {
	return e.run("peer with "+e.provider(), func(ctx workflow.Context) (fleet.Event, error) {
		in := activities.PeerInput{Attempt: attemptOf(e.inst), Shape: e.inst.Spec.Shape, Offer: *e.inst.Offer}
		err := workflow.ExecuteActivity(ctx, activities.NamePeer, in).Get(ctx, nil)
		return fleet.Event{Free: activities.FreeOf(err)}, err
	})
}

func (e *engine) join() fleet.Event {
	return e.run(fmt.Sprintf("wait for virtual node %s", attemptOf(e.inst).ObjectName()), func(ctx workflow.Context) (fleet.Event, error) {
		spec := e.inst.Spec
		in := backend.NodeSpec{
			Attempt: attemptOf(e.inst), Shape: spec.Shape, Labels: spec.NodeLabels(), Taints: spec.NodeTaints(),
			Booking: backend.Booking{Spec: spec, BookedAt: e.inst.BookedAt},
		}
		err := workflow.ExecuteActivity(ctx, activities.NameWaitForVirtualNode, in).Get(ctx, nil)
		return fleet.Event{}, err
	})
}

func (e *engine) provider() string {
	if e.inst.Offer == nil {
		return ""
	}
	return e.inst.Offer.Provider
}

// attemptOf names the instance's current attempt to the backend.
func attemptOf(i fleet.Instance) backend.Attempt {
	at := backend.Attempt{Group: i.Spec.ID, Instance: i.Name, Number: i.Attempt}
	if i.Offer != nil {
		at.Provider = backend.Provider{ID: i.Offer.Provider, Credentials: i.Offer.Credentials}
	}
	return at
}
