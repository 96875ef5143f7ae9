package driver

import (
	"fmt"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// What a driver does when a step has ended: it applies the table, and goes on with the phase that it leads to.

// lookFor is how long between two looks for room.
const lookFor = 5 * time.Second

// ended takes the end of the step under way, and then the answer that overtook it.
func (d *Driver) ended(ev fleet.Event, now time.Time) []Action {
	actions := d.concluded(ev, now)
	if early := d.early; early != nil {
		d.early = nil
		actions = append(actions, d.answered(*early, true, now)...)
	}
	return actions
}

// concluded takes the end of the step under way. A step that reached its end all the same is done, whatever came in
// between.
func (d *Driver) concluded(ev fleet.Event, now time.Time) []Action {
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
	if d.Ending != "" && !d.arrived() {
		return d.end(now)
	}
	if ev.Kind == fleet.Again && ev.Step == fleet.StepSelect {
		d.Ahead, d.Taken = 0, nil // by the next look it is published, or given back
		return []Action{{Timer: lookFor}}
	}
	return d.next(now)
}

// arrived reports whether the instance is in a phase at rest: its driver has nothing more to do.
func (d *Driver) arrived() bool {
	p := d.Instance.Phase
	return p == fleet.Ready || p == fleet.Released || p == fleet.Failed
}

// foundNoRoom reports whether every provider that fits has been full for the whole budget; the first time starts it.
func (d *Driver) foundNoRoom(ev fleet.Event, now time.Time) bool {
	if d.Instance.Phase != fleet.Selecting || ev.Kind != fleet.Again {
		return false
	}
	if d.FullSince.IsZero() {
		d.FullSince = now
	}
	return now.Sub(d.FullSince) >= d.Spec.Budgets.WithDefaults().SelectWait.Duration
}

// apply moves the instance by the table and keeps what the move leaves behind.
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

// next goes on with the phase that the instance is in.
func (d *Driver) next(now time.Time) []Action {
	i := &d.Instance
	switch i.Phase {
	case fleet.Discovering, fleet.Selecting:
		if i.Deadline().After(now) {
			return d.run()
		}
		d.apply(fleet.Event{Kind: fleet.Deadline, Failure: d.late()}, now)
		return d.tellEnd(fleet.EndFinal)
	case fleet.Peering: // Select told the view and the acquire; the group says when to ask again
		return nil
	case fleet.Joining, fleet.Draining, fleet.Unpeering:
		return d.run()
	case fleet.Ready, fleet.Released: // Join and Return told the view
		return []Action{{End: fleet.EndFinal}}
	default:
		return d.tellEnd(fleet.EndFinal)
	}
}

// late is why an instance past its deadline fails: the last failure, if there was one.
func (d *Driver) late() *fleet.Failure {
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
