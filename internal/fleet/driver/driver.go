package driver

import (
	"fmt"
	"slices"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Driver is the state of the workflow that drives one instance. scale-out/<name> drives the instance from Pending
// until it is Ready, has failed or must be removed. scale-in/<name> drives the instance from Draining to Released.
// Step processes one event and returns the workflow's next actions.
type Driver struct {
	Instance   fleet.Instance
	Spec       fleet.InstanceSpec
	Generation fleet.Generation
	// Began is the start time of this run.
	Began time.Time
	// Sequence is the number of the newest view. It increases before the step that delivers the view is scheduled.
	Sequence int
	// Left lists the abandoned attempts, which may have left objects behind.
	Left []fleet.Attempt
	// Running names the step in progress, or StepNone.
	Running fleet.Step
	// Resends is the number of the group's last order to repeat the request. Unanswered counts the consecutive requests
	// without an answer. FullSince is the time since which no provider has had enough free capacity.
	Resends, Unanswered int
	FullSince           time.Time
	// First is copied from DriverInput.
	First bool
	// Ahead and Taken are copied from DriverInput. They apply to the first search for a provider only.
	Ahead int
	Taken map[string]int
	// Failures is copied from DriverInput.
	Failures map[string][]time.Time
	// Ending is the reason why the driver ends before its work is done.
	Ending fleet.EventKind // Cancelled, Deleted, Paused, Stopped; empty: the driver continues
	again  bool            // run the step in progress once more
	// early is a provider's answer that arrived before the result of the Select that sent the request.
	early *fleet.Answer
}

// New returns a driver with the state that the group handed over. A new scale-out starts in Discovering.
func New(in fleet.DriverInput, now time.Time) *Driver {
	d := &Driver{
		Instance: in.Instance, Spec: in.Spec, Generation: in.Generation, Began: now, First: in.First,
		Ahead: in.Ahead, Taken: in.Taken,
		Failures: in.Failures,
	}
	d.Instance.Spec = &d.Spec
	if d.Instance.Phase == fleet.Pending {
		_, _ = d.Instance.Apply(fleet.Event{Kind: fleet.Done, Attempt: d.Instance.Attempt}, now) // the table has this move
	}
	return d
}

// Event describes one thing that happened to a driver. The zero value starts the driver.
type Event struct {
	// Ended is the result of the step in progress: Done, Again, Refused or GaveUp, or Cancelled after CancelStep.
	Ended *fleet.Event
	// Answer is the provider's answer to the attempt's request for a hold.
	Answer *fleet.Answer
	Order  *fleet.Order
	// Elapsed reports that the driver's timer fired.
	Elapsed bool
	// Cancelled reports that an operator cancelled the workflow. Reset reports that an operator reset the workflow,
	// so that the driver's state is out of date.
	Cancelled, Reset bool
}

// Action describes one thing that a driver's workflow does next.
type Action struct {
	// Run starts a step. The result arrives as Event.Ended.
	Run fleet.Step
	// CancelStep cancels the step in progress. The driver waits for the step's end.
	CancelStep bool
	// Timer schedules an event with Elapsed after this duration. If it is zero, no timer runs.
	Timer time.Duration
	// Resend sends the request for a hold to the provider again. Release releases the attempt's hold.
	Resend  bool
	Release *fleet.Attempt
	// Report is a view that the workflow must deliver itself, because no step delivers it.
	Report *fleet.View
	// End ends the workflow after all earlier actions are delivered: EndFinal completes it, EndStopped fails it.
	End fleet.End
}

// Step processes one event and returns the next actions. It is pure: now is the only clock.
func (d *Driver) Step(ev Event, now time.Time) []Action {
	switch {
	case ev.Order != nil:
		return d.applyOrder(*ev.Order, now)
	case ev.Cancelled:
		return d.endBy(fleet.Cancelled, now)
	case ev.Reset:
		return d.endBy(fleet.Stopped, now)
	case ev.Ended != nil:
		return d.stepEnded(*ev.Ended, now)
	case ev.Answer != nil:
		return d.applyAnswer(*ev.Answer, false, now)
	case ev.Elapsed && (d.Running != fleet.StepNone || d.Ending != ""):
		return nil
	default:
		return d.next(now)
	}
}

// applyOrder processes an order of the group. It ignores an order of an older generation.
func (d *Driver) applyOrder(o fleet.Order, now time.Time) []Action {
	if o.Generation.Known() && o.Generation.Before(d.Generation) {
		return nil
	}
	switch {
	case o.Stop:
		return d.endBy(fleet.Stopped, now)
	case o.Deleted && !d.Instance.Phase.Shrinking():
		d.Instance.MarkDeleted()
		return d.endBy(fleet.Deleted, now)
	case o.Paused && d.Instance.Phase.Row().Moves[fleet.Paused].To != "":
		return d.endBy(fleet.Paused, now)
	}
	return d.applyOtherOrder(o, now)
}

// applyOtherOrder processes the orders that do not end the driver.
func (d *Driver) applyOtherOrder(o fleet.Order, now time.Time) []Action {
	switch {
	case o.Lost && d.Running == fleet.StepDrain && !d.Instance.Force:
		_, _ = d.Instance.Apply(fleet.Event{Kind: fleet.Lost}, now)
		return d.runAgain()
	case o.Resend > 0:
		return d.requestAgain(o, now)
	case o.Retry && d.Running == fleet.StepReturn: // a repeated drain would restart its budget
		return d.runAgain()
	}
	return nil
}

func (d *Driver) runAgain() []Action {
	d.again = true
	return []Action{{CancelStep: true}}
}

// endBy ends the driver: immediately, or after the step in progress has been cancelled and has ended.
func (d *Driver) endBy(why fleet.EventKind, now time.Time) []Action {
	if d.Ending == "" || why == fleet.Stopped {
		d.Ending = why
	}
	if d.Running != fleet.StepNone {
		return []Action{{CancelStep: true}}
	}
	return d.end(now)
}

// end applies the reason for the end, and sends the last view. If the attempt has requested a hold that is not granted
// yet, end also releases this hold.
func (d *Driver) end(now time.Time) []Action {
	at, waiting, end := d.Instance.AttemptRef(), d.Instance.Phase == fleet.Peering, fleet.EndFinal
	switch d.Ending {
	case fleet.Stopped:
		return d.reportEnd(fleet.EndStopped)
	case fleet.Cancelled:
		end = fleet.EndStopped
		text := fmt.Sprintf("cancelled by an operator during %s", d.Instance.Phase)
		ev := fleet.Event{Kind: fleet.Cancelled, Failure: fleet.NewFailure(fleet.CodeCancelled, at.Provider.ID, "", text)}
		d.apply(ev, now)
	case fleet.Paused:
		d.apply(fleet.Event{Kind: fleet.Paused, Failure: fleet.PausedFailure(d.Spec.ID)}, now)
	default:
		d.apply(fleet.Event{Kind: fleet.Deleted}, now)
		waiting = false // the scale-in releases the hold
	}
	if waiting {
		return append([]Action{{Release: &at}}, d.reportEnd(end)...)
	}
	return d.reportEnd(end)
}

func (d *Driver) reportEnd(end fleet.End) []Action {
	d.Sequence++
	v := d.View()
	v.End = end
	return []Action{{Report: &v, End: end}}
}

// View returns the report about the instance as it is now, with the newest sequence number.
func (d *Driver) View() fleet.View {
	i := &d.Instance
	v := fleet.View{
		Instance: i.Name, Generation: d.Generation, Sequence: d.Sequence, Began: d.Began, Phase: i.Phase,
		Attempt: i.Attempt,
		Refused: slices.Clone(i.Refused), Failure: i.Failure, Stuck: i.Stuck, Force: i.Force, Abandoned: slices.Clone(d.Left),
		SpecHash: i.SpecHash, BookedAt: i.BookedAt,
	}
	if i.Offer != nil {
		v.Offer = i.Offer.ForView()
	}
	return v
}
