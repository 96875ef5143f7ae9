package driver

import (
	"fmt"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// This file handles the end of a step: the driver applies the table and continues with the phase that results.

// searchPause is the pause between two searches for free capacity.
const searchPause = 5 * time.Second

// stepEnded processes the result of the step in progress, and then the provider's answer that arrived before this
// result.
func (d *Driver) stepEnded(ev fleet.Event, now time.Time) []Action {
	actions := d.applyEnd(ev, now)
	if early := d.early; early != nil {
		d.early = nil
		actions = append(actions, d.applyAnswer(*early, true, now)...)
	}
	return actions
}

// applyEnd processes the result of the step in progress. A step that completed although it was cancelled counts as
// done.
func (d *Driver) applyEnd(ev fleet.Event, now time.Time) []Action {
	again := d.again
	d.Running, d.again = fleet.StepNone, false
	switch {
	case again && ev.Kind != fleet.Done && d.Ending == "":
		return d.next(now)
	case ev.Kind == fleet.Cancelled && d.Ending != "":
		return d.end(now)
	case d.foundNoRoom(ev, now):
		ev.Kind = fleet.Refused
	}
	d.apply(ev, now)
	if d.Ending != "" && !d.isAtRest() {
		return d.end(now)
	}
	if ev.Kind == fleet.Again && ev.Step == fleet.StepSelect {
		d.Ahead, d.Taken = 0, nil // the next Select finds the other instances' holds published or released
		return []Action{{Timer: searchPause}}
	}
	return d.next(now)
}

// isAtRest reports whether the instance is Ready, Released or Failed, so that its driver has nothing more to do.
func (d *Driver) isAtRest() bool {
	p := d.Instance.Phase
	return p == fleet.Ready || p == fleet.Released || p == fleet.Failed
}

// foundNoRoom reports whether every matching provider has been full for the whole budget SelectWait. The first Select
// that finds no free capacity starts this budget.
func (d *Driver) foundNoRoom(ev fleet.Event, now time.Time) bool {
	if d.Instance.Phase != fleet.Selecting || ev.Kind != fleet.Again {
		return false
	}
	if d.FullSince.IsZero() {
		d.FullSince = now
	}
	return now.Sub(d.FullSince) >= d.Spec.Budgets.WithDefaults().SelectWait.Duration
}

// apply applies the event to the instance. It records the attempt if the attempt must be undone.
func (d *Driver) apply(ev fleet.Event, now time.Time) {
	at := d.Instance.AttemptRef()
	m, err := d.Instance.Apply(ev, now)
	if err == nil && m.Undo {
		d.Left = append(d.Left, at)
	}
	if ev.Kind == fleet.Done && d.Instance.Phase == fleet.Peering {
		d.Resends, d.Unanswered, d.FullSince, d.Ahead, d.Taken = 0, 0, time.Time{}, 0, nil
	}
}

// next returns the actions for the instance's present phase.
func (d *Driver) next(now time.Time) []Action {
	i := &d.Instance
	switch i.Phase {
	case fleet.Discovering, fleet.Selecting:
		if i.Deadline().After(now) {
			return d.run()
		}
		d.apply(fleet.Event{Kind: fleet.Deadline, Failure: d.deadlineFailure()}, now)
		return d.reportEnd(fleet.EndFinal)
	case fleet.Peering: // Select has sent the view and the request for a hold; the group orders a repetition
		return nil
	case fleet.Joining, fleet.Draining, fleet.Unpeering:
		return d.run()
	case fleet.Ready, fleet.Released: // Join or Return has delivered the view
		return []Action{{End: fleet.EndFinal}}
	default:
		return d.reportEnd(fleet.EndFinal)
	}
}

// deadlineFailure returns the failure of an instance whose deadline has passed: its last failure, or a timeout if it
// had no failure.
func (d *Driver) deadlineFailure() *fleet.Failure {
	if f := d.Instance.Failure; f != nil {
		return f
	}
	text := fmt.Sprintf("no provider was found within budgets.total (%s)", d.Spec.Budgets.WithDefaults().Total.Duration)
	return fleet.NewFailure(fleet.CodeTimeout, "", "", text)
}

func (d *Driver) run() []Action {
	d.Running = d.Instance.Phase.Row().Step
	d.Sequence++
	return []Action{{Run: d.Running}}
}
