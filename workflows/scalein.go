package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// ScaleIn moves one instance from Draining or Unpeering to Released. It gives up waiting for pods after the drain budget
// and never gives up taking the slice back. Cancelled by an operator, it stops after the step under way and leaves the
// instance stuck, to be resumed by the next DeleteNodes or the signal "retry".
func ScaleIn(ctx workflow.Context, in DriveInput) error {
	e := newEngine(ctx, in.Instance)
	for e.inst.Phase.Shrinking() && !e.canceled && !e.reset {
		var ev fleet.Event
		switch e.inst.Phase {
		case fleet.Draining:
			ev = e.drain()
		case fleet.Unpeering:
			ev = e.unpeer()
		}
		if err := e.apply(ev); err != nil {
			return err
		}
	}
	if e.canceled && !e.reset && e.inst.Phase.Shrinking() && e.inst.Stuck == "" { // the step under way reached its end all the same
		step := e.inst.Phase.Row().Step
		if err := e.apply(fleet.Event{Kind: fleet.Cancelled, Step: step, Attempt: e.inst.Attempt}); err != nil {
			return err
		}
	}
	return e.close()
}

func (e *engine) drain() fleet.Event {
	ev := e.run("drain "+attemptOf(e.inst).ObjectName(), func(ctx workflow.Context) (fleet.Event, error) {
		in := activities.DrainInput{Attempt: attemptOf(e.inst), Force: e.inst.Force}
		return fleet.Event{}, workflow.ExecuteActivity(ctx, activities.NameDrain, in).Get(ctx, nil)
	})
	return e.shrinking(ev)
}

func (e *engine) unpeer() fleet.Event {
	ev := e.run("return "+attemptOf(e.inst).ObjectName()+" to "+e.provider(), func(ctx workflow.Context) (fleet.Event, error) {
		in := activities.UnpeerInput{Attempt: attemptOf(e.inst)}
		return fleet.Event{}, workflow.ExecuteActivity(forever(ctx, "return the slice"), activities.NameUnpeer, in).Get(ctx, nil)
	})
	return e.shrinking(ev)
}

// shrinking keeps a late leave, which means nothing to an instance that is leaving, from hiding what happened.
func (e *engine) shrinking(ev fleet.Event) fleet.Event {
	e.left = false
	return ev
}
