package driver

import (
	"fmt"
	"slices"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Driver is the state of the workflow that drives one instance: scale-out/<name> from Pending to the next phase at
// rest, scale-in/<name> from Draining to Released. Step takes what happened and returns what the workflow is to do.
type Driver struct {
	Instance   fleet.Instance
	Spec       fleet.InstanceSpec
	Generation fleet.Generation
	// Began is when this run began.
	Began time.Time
	// Sequence is that of the newest view, given before the step that tells it is scheduled.
	Sequence int
	// Left are the attempts that are over and may have left something behind.
	Left []fleet.Attempt
	// Running is the step under way.
	Running fleet.Step
	// Resends is the number of the group's last order to repeat the request, Unanswered how many requests in a row had no
	// answer; FullSince is since when nothing fits.
	Resends, Unanswered int
	FullSince           time.Time
	// First is as in DriverInput.
	First bool
	// Ahead and Taken are as in DriverInput; they hold for the first look.
	Ahead int
	Taken map[string]int
	// Failures are as in DriverInput.
	Failures map[string][]time.Time
	// Ending is why the driver ends before its work is done.
	Ending fleet.EventKind // Cancelled, Deleted, Paused, Stopped; empty: it goes on
	again  bool            // the step under way is to be run once more
	// early is a provider's answer that overtook the end of Select, which asked for it.
	early *fleet.Answer
}

// New begins with what the group handed over. A scale-out begins by looking for a provider.
func New(in fleet.DriverInput, now time.Time) *Driver {
	d := &Driver{
		Instance: in.Instance, Spec: in.Spec, Generation: in.Generation, Began: now, First: in.First,
		Ahead: in.Ahead, Taken: in.Taken,
		Failures: in.Failures,
	}
	d.Instance.Spec = &d.Spec
	if d.Instance.Phase == fleet.Pending {
		_, _ = d.Instance.Apply(fleet.Event{Kind: fleet.Done, Attempt: d.Instance.Attempt}, now) // defined, and for this step
	}
	return d
}

// Event is one thing that happened to a driver; the zero value begins it.
type Event struct {
	// Ended is the end of the step under way: Done, Again, Refused or GaveUp, or Cancelled when it was called off.
	Ended *fleet.Event
	// Answer is the provider's.
	Answer *fleet.Answer
	Order  *fleet.Order
	// Elapsed: the timer that the driver asked for fired.
	Elapsed bool
	// Cancelled: an operator cancelled the workflow. Reset: an operator reset it, and what it knows is of the past.
	Cancelled, Reset bool
}

// Action is what a driver's workflow does next.
type Action struct {
	// Run starts a step; its end comes as Event.Ended.
	Run fleet.Step
	// CancelStep calls the step under way off; its end is awaited.
	CancelStep bool
	// Timer asks for Elapsed after a while; zero leaves no timer running.
	Timer time.Duration
	// Ask tells the provider once more what the attempt waits for; Release gives its hold back.
	Ask     bool
	Release *fleet.Attempt
	// Report is a view to deliver, when no step delivers it.
	Report *fleet.View
	// End ends the workflow once everything before is delivered: EndFinal completes it, EndStopped fails it.
	End fleet.End
}

// Step is the driver's decision.
func (d *Driver) Step(ev Event, now time.Time) []Action {
	switch {
	case ev.Order != nil:
		return d.ordered(*ev.Order, now)
	case ev.Cancelled:
		return d.endBy(fleet.Cancelled, now)
	case ev.Reset:
		return d.endBy(fleet.Stopped, now)
	case ev.Ended != nil:
		return d.ended(*ev.Ended, now)
	case ev.Answer != nil:
		return d.answered(*ev.Answer, false, now)
	case ev.Elapsed && (d.Running != fleet.StepNone || d.Ending != ""):
		return nil
	default:
		return d.next(now)
	}
}

// ordered takes what the group says.
func (d *Driver) ordered(o fleet.Order, now time.Time) []Action {
	if o.Generation.Known() && o.Generation.Before(d.Generation) {
		return nil
	}
	switch {
	case o.Stop:
		return d.endBy(fleet.Stopped, now)
	case o.Deleted && !d.Instance.Phase.Shrinking():
		d.Instance.GiveBack()
		return d.endBy(fleet.Deleted, now)
	case o.Paused && d.Instance.Phase.Row().Moves[fleet.Paused].To != "":
		return d.endBy(fleet.Paused, now)
	}
	return d.orderedOn(o, now)
}

// orderedOn takes what does not end the driver.
func (d *Driver) orderedOn(o fleet.Order, now time.Time) []Action {
	switch {
	case o.Lost && d.Running == fleet.StepDrain && !d.Instance.Force:
		_, _ = d.Instance.Apply(fleet.Event{Kind: fleet.Lost}, now)
		return d.runAgain()
	case o.Resend > 0:
		return d.askAgain(o, now)
	case o.Retry && d.Running == fleet.StepReturn: // a drain has a budget, which would begin anew
		return d.runAgain()
	}
	return nil
}

func (d *Driver) runAgain() []Action {
	d.again = true
	return []Action{{CancelStep: true}}
}

// endBy ends the driver: at once, or when the step under way has ended.
func (d *Driver) endBy(why fleet.EventKind, now time.Time) []Action {
	if d.Ending == "" || why == fleet.Stopped {
		d.Ending = why
	}
	if d.Running != fleet.StepNone {
		return []Action{{CancelStep: true}}
	}
	return d.end(now)
}

// end applies why the driver ends, gives back what only waits, and tells the last view.
func (d *Driver) end(now time.Time) []Action {
	at, waiting, end := d.Instance.AttemptRef(), d.Instance.Phase == fleet.Peering, fleet.EndFinal
	switch d.Ending {
	case fleet.Stopped:
		return d.tellEnd(fleet.EndStopped)
	case fleet.Cancelled:
		end = fleet.EndStopped
		text := fmt.Sprintf("cancelled by an operator during %s", d.Instance.Phase)
		ev := fleet.Event{Kind: fleet.Cancelled, Failure: fleet.NewFailure(fleet.CodeCancelled, at.Provider.ID, "", text)}
		d.apply(ev, now)
	case fleet.Paused:
		d.apply(fleet.Event{Kind: fleet.Paused, Failure: fleet.PausedFailure(d.Spec.ID)}, now)
	default:
		d.apply(fleet.Event{Kind: fleet.Deleted}, now)
		waiting = false // it is the scale-in's to give back
	}
	if waiting {
		return append([]Action{{Release: &at}}, d.tellEnd(end)...)
	}
	return d.tellEnd(end)
}

func (d *Driver) tellEnd(end fleet.End) []Action {
	d.Sequence++
	v := d.View()
	v.End = end
	return []Action{{Report: &v, End: end}}
}

// View is what the driver tells of its instance now, under its newest sequence.
func (d *Driver) View() fleet.View {
	i := &d.Instance
	v := fleet.View{
		Instance: i.Name, Generation: d.Generation, Sequence: d.Sequence, Began: d.Began, Phase: i.Phase,
		Attempt: i.Attempt,
		Refused: slices.Clone(i.Refused), Failure: i.Failure, Stuck: i.Stuck, Force: i.Force, Abandoned: slices.Clone(d.Left),
		SpecHash: i.SpecHash, BookedAt: i.BookedAt,
	}
	if i.Offer != nil {
		v.Offer = i.Offer.Told()
	}
	return v
}
