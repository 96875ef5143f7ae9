package fleet

import (
	"fmt"
	"time"
)

// Driver is the state of the workflow that drives one instance: scale-out/<name> from Pending to the next phase at
// rest, scale-in/<name> from Draining to Released. Step takes what happened and returns what the workflow is to do.
type Driver struct {
	Instance   Instance
	Spec       GroupSpec
	Generation Generation
	// Began is when this run began.
	Began time.Time
	// Sequence is that of the newest view, given before the step that tells it is scheduled.
	Sequence int
	// Left are the attempts that are over and may have left something behind.
	Left []Attempt
	// Running is the step under way.
	Running Step
	// Asks is the number of the group's last order to ask the provider again, Unanswered how many asks in a row had no
	// answer; FullSince is since when nothing fits.
	Asks, Unanswered int
	FullSince        time.Time
	// Ahead and Taken are as in DriverInput; they hold for the first attempt.
	Ahead int
	Taken map[string]int
	// Failures are as in DriverInput.
	Failures map[string][]time.Time
	// Ending is why the driver ends before its work is done.
	Ending EventKind // Cancelled, Deleted, Paused, Stopped; empty: it goes on
	again  bool      // the step under way is to be run once more
	// early is a provider's answer that overtook the end of Select, which asked for it.
	early *Answer
}

// Stopped ends a driver whose group no longer wants it; it is no event of the table.
const Stopped EventKind = "stopped"

// NewDriver begins with what the group handed over. A scale-out begins by looking for a provider.
func NewDriver(in DriverInput, now time.Time) *Driver {
	d := &Driver{
		Instance: in.Instance, Spec: in.Spec, Generation: in.Generation, Began: now, Ahead: in.Ahead, Taken: in.Taken,
		Failures: in.Failures,
	}
	d.Instance.Spec = &d.Spec
	if d.Instance.Phase == Pending {
		_, _ = d.Instance.Apply(Event{Kind: Done, Attempt: d.Instance.Attempt}, now) // defined, and for this step
	}
	return d
}

// DriverEvent is one thing that happened to a driver; the zero value begins it.
type DriverEvent struct {
	// Ended is the end of the step under way: Done, Again, Refused or GaveUp, or Cancelled when it was called off.
	Ended *Event
	// Answer is the provider's.
	Answer *Answer
	Order  *Order
	// Elapsed: the timer that the driver asked for fired.
	Elapsed bool
	// Cancelled: an operator cancelled the workflow. Reset: an operator reset it, and what it knows is of the past.
	Cancelled, Reset bool
}

// DriverAction is what a driver's workflow does next.
type DriverAction struct {
	// Run starts a step; its end comes as DriverEvent.Ended.
	Run Step
	// CancelStep calls the step under way off; its end is awaited.
	CancelStep bool
	// Timer asks for Elapsed after a while; zero leaves no timer running.
	Timer time.Duration
	// Ask tells the provider once more what the attempt waits for; Release gives its hold back.
	Ask     bool
	Release *Attempt
	// Tell has the view told, when no step tells it.
	Tell *View
	// End ends the workflow once everything before is delivered: EndFinal completes it, EndStopped fails it.
	End End
}

// Step is the driver's decision.
func (d *Driver) Step(ev DriverEvent, now time.Time) []DriverAction {
	switch {
	case ev.Order != nil:
		return d.ordered(*ev.Order, now)
	case ev.Cancelled:
		return d.endBy(Cancelled, now)
	case ev.Reset:
		return d.endBy(Stopped, now)
	case ev.Ended != nil:
		return d.ended(*ev.Ended, now)
	case ev.Answer != nil:
		return d.answered(*ev.Answer, false, now)
	case ev.Elapsed && (d.Running != StepNone || d.Ending != ""):
		return nil
	default:
		return d.next(now)
	}
}

// ordered takes what the group says.
func (d *Driver) ordered(o Order, now time.Time) []DriverAction {
	if o.Generation.Known() && o.Generation.Before(d.Generation) {
		return nil
	}
	switch {
	case o.Stop:
		return d.endBy(Stopped, now)
	case o.Deleted && !d.Instance.Phase.Shrinking():
		d.Instance.GiveBack()
		return d.endBy(Deleted, now)
	case o.Paused && d.Instance.Phase.Row().Moves[Paused].To != "":
		return d.endBy(Paused, now)
	}
	return d.orderedOn(o, now)
}

// orderedOn takes what does not end the driver.
func (d *Driver) orderedOn(o Order, now time.Time) []DriverAction {
	switch {
	case o.Lost && d.Running == StepDrain && !d.Instance.Force:
		_, _ = d.Instance.Apply(Event{Kind: Lost}, now)
		return d.runAgain()
	case o.Ask > 0:
		return d.askAgain(o, now)
	case o.Retry && d.Running == StepReturn: // a drain has a budget, which would begin anew
		return d.runAgain()
	}
	return nil
}

func (d *Driver) runAgain() []DriverAction {
	d.again = true
	return []DriverAction{{CancelStep: true}}
}

// endBy ends the driver: at once, or when the step under way has ended.
func (d *Driver) endBy(why EventKind, now time.Time) []DriverAction {
	if d.Ending == "" || why == Stopped {
		d.Ending = why
	}
	if d.Running != StepNone {
		return []DriverAction{{CancelStep: true}}
	}
	return d.end(now)
}

// end applies why the driver ends, gives back what only waits, and tells the last view.
func (d *Driver) end(now time.Time) []DriverAction {
	var actions []DriverAction
	at, waiting := d.Instance.AttemptRef(), d.Instance.Phase == Peering
	switch d.Ending {
	case Stopped:
		return d.tellEnd(EndStopped)
	case Cancelled:
		text := fmt.Sprintf("cancelled by an operator during %s", d.Instance.Phase)
		ev := Event{Kind: Cancelled, Failure: NewFailure(CodeCancelled, at.Provider.ID, "", text)}
		d.apply(ev, now)
		if waiting {
			actions = append(actions, DriverAction{Release: &at})
		}
		return append(actions, d.tellEnd(EndStopped)...)
	case Paused:
		d.apply(Event{Kind: Paused, Failure: pausedFailure(d.Spec.ID)}, now)
		if waiting {
			actions = append(actions, DriverAction{Release: &at})
		}
		return append(actions, d.tellEnd(EndFinal)...)
	default:
		d.apply(Event{Kind: Deleted}, now)
		return d.tellEnd(EndFinal)
	}
}

func (d *Driver) tellEnd(end End) []DriverAction {
	d.Sequence++
	v := d.View()
	v.End = end
	return []DriverAction{{Tell: &v, End: end}}
}
