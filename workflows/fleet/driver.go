package fleet

import (
	"fmt"
	"slices"
	"time"
)

// How long a driver waits for its provider, and how long between two looks for room.
const (
	firstAsk = 30 * time.Second
	lookFor  = 5 * time.Second
	maxAsks  = 3
)

// Driver is the state of the workflow that drives one instance: scale-out/<name> from Pending to the next phase at
// rest, scale-in/<name> from Draining to Released. Step takes what happened and returns what the workflow is to do.
type Driver struct {
	Instance   Instance
	Spec       GroupSpec
	Generation Generation
	// Sequence is that of the newest view, given before the step that tells it is scheduled.
	Sequence int
	// Left are the attempts that are over and may have left something behind.
	Left []Attempt
	// Running is the step under way.
	Running Step
	// Asks counts the asks in a row that the provider did not answer; FullSince is since when nothing fits.
	Asks      int
	FullSince time.Time
	// Ahead and Taken are as in DriverInput; they hold for the first attempt.
	Ahead int
	Taken map[string]int
	// Ending is why the driver ends before its work is done.
	Ending EventKind // Cancelled, Deleted, Stopped; empty: it goes on
	again  bool      // the step under way is to be run once more
	// early is a provider's answer that overtook the end of Select, which asked for it.
	early *Answer
}

// Stopped ends a driver whose group no longer wants it; it is no event of the table.
const Stopped EventKind = "stopped"

// NewDriver begins with what the group handed over. A scale-out begins by looking for a provider.
func NewDriver(in DriverInput, now time.Time) *Driver {
	d := &Driver{
		Instance: in.Instance, Spec: in.Spec, Generation: in.Generation, Ahead: in.Ahead, Taken: in.Taken,
	}
	d.Instance.Spec = &d.Spec
	if d.Instance.Phase == Pending {
		_, _ = d.Instance.Apply(Event{Kind: Done, Attempt: d.Instance.Attempt}, now) // defined, and for this step
	}
	return d
}

// DriverEvent is one thing that happened to a driver; the zero value begins it.
type DriverEvent struct {
	// Ended is the end of the step under way: Done, Again, Refused or GaveUp, or CancelledStep when it was called off.
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
	case ev.Elapsed:
		return d.elapsed(now)
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
	case o.Lost && d.Running == StepDrain && !d.Instance.Force:
		_, _ = d.Instance.Apply(Event{Kind: Lost}, now)
		return d.runAgain()
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

// ended takes the end of the step under way, and then the answer that overtook it.
func (d *Driver) ended(ev Event, now time.Time) []DriverAction {
	actions := d.concluded(ev, now)
	if early := d.early; early != nil {
		d.early = nil
		actions = append(actions, d.answered(*early, true, now)...)
	}
	return actions
}

// concluded takes the end of the step under way. A step that reached its end all the same is done, whatever came in
// between.
func (d *Driver) concluded(ev Event, now time.Time) []DriverAction {
	again := d.again
	d.Running, d.again = StepNone, false
	switch {
	case again && ev.Kind != Done && d.Ending == "":
		return d.next(now)
	case ev.Kind == Cancelled && d.Ending != "":
		return d.end(now)
	case d.foundNoRoom(ev, now):
		ev.Kind = Refused
	}
	d.apply(ev, now)
	if d.Ending != "" && !d.arrived() {
		return d.end(now)
	}
	if d.Instance.Phase == Discovering && ev.Kind == Again && ev.Step == StepSelect {
		return []DriverAction{{Timer: lookFor}}
	}
	return d.next(now)
}

// arrived reports whether the instance is in a phase at rest: its driver has nothing more to do.
func (d *Driver) arrived() bool {
	p := d.Instance.Phase
	return p == Ready || p == Released || p == Failed
}

// foundNoRoom reports whether every provider that fits has been full for the whole budget; the first time starts it.
func (d *Driver) foundNoRoom(ev Event, now time.Time) bool {
	if d.Instance.Phase != Selecting || ev.Kind != Again {
		return false
	}
	if d.FullSince.IsZero() {
		d.FullSince = now
	}
	return now.Sub(d.FullSince) >= d.Spec.Budgets.WithDefaults().SelectWait.Duration
}

// apply moves the instance by the table and keeps what the move leaves behind.
func (d *Driver) apply(ev Event, now time.Time) {
	at := d.Instance.AttemptRef()
	m, err := d.Instance.Apply(ev, now)
	if err == nil && m.Undo {
		d.Left = append(d.Left, at)
	}
	if ev.Kind == Done && d.Instance.Phase == Peering {
		d.Asks, d.FullSince, d.Ahead, d.Taken = 0, time.Time{}, 0, nil
	}
}

// next goes on with the phase that the instance is in.
func (d *Driver) next(now time.Time) []DriverAction {
	i := &d.Instance
	switch i.Phase {
	case Discovering, Selecting:
		if i.Deadline().After(now) {
			return d.run()
		}
		d.apply(Event{Kind: Deadline, Failure: d.late()}, now)
		return d.tellEnd(EndFinal)
	case Peering: // Select told the view and the acquire
		return []DriverAction{{Timer: firstAsk}}
	case Joining, Draining, Unpeering:
		return d.run()
	case Ready, Released: // Join and Return told the view
		return []DriverAction{{End: EndFinal}}
	default:
		return d.tellEnd(EndFinal)
	}
}

// late is why an instance past its deadline fails: the last failure, if there was one.
func (d *Driver) late() *Failure {
	if f := d.Instance.Failure; f != nil {
		return f
	}
	text := fmt.Sprintf("no provider was found within budgets.total (%s)", d.Spec.Budgets.WithDefaults().Total.Duration)
	return NewFailure(CodeTimeout, "", "", text)
}

func (d *Driver) run() []DriverAction {
	d.Running = d.Instance.Phase.Row().Step
	d.Sequence++
	return []DriverAction{{Run: d.Running}}
}

// answered takes the provider's answer, if the attempt waits for it. A grant for an attempt that was left is given
// back, and one that came early, before its Select failed; any other for a later attempt, which this driver forgot when
// it was reset, is the undo's to give back.
func (d *Driver) answered(a Answer, early bool, now time.Time) []DriverAction {
	at := d.Instance.AttemptRef()
	if d.Running == StepSelect && AttemptOfKey(a.Key) > at.Number {
		d.early = &a
		return nil
	}
	if a.Key != at.ObjectName() {
		return d.returns(a, early)
	}
	if d.Instance.Phase != Peering || d.Ending != "" {
		return nil
	}
	ev := Event{Kind: Done, Step: StepAcquire, Attempt: d.Instance.Attempt, Failure: a.Failure}
	switch {
	case a.State == HoldGranted:
	case a.State == HoldReleased, a.Failure != nil && a.Failure.Code == CodeNoCapacity:
		ev.Kind = Again
	default:
		ev.Kind = Refused
	}
	if ev.Kind == Again && d.FullSince.IsZero() {
		d.FullSince = now
	}
	d.apply(ev, now)
	return d.next(now)
}

// returns gives back a grant for another attempt than the present one: see answered.
func (d *Driver) returns(a Answer, early bool) []DriverAction {
	at := d.Instance.AttemptRef()
	at.Number, at.Provider = AttemptOfKey(a.Key), Provider{ID: a.From}
	if a.State != HoldGranted || at.Number >= d.Instance.Attempt && !early {
		return nil
	}
	return []DriverAction{{Release: &at}}
}

// elapsed asks the provider again; after three asks without an answer the attempt is over, and nobody is to blame.
func (d *Driver) elapsed(now time.Time) []DriverAction {
	if d.Running != StepNone || d.Ending != "" {
		return nil
	}
	if d.Instance.Phase != Peering {
		return d.next(now)
	}
	d.Asks++
	if d.Asks < maxAsks {
		return []DriverAction{{Ask: true, Timer: []time.Duration{60 * time.Second, 120 * time.Second}[d.Asks-1]}}
	}
	at := d.Instance.AttemptRef()
	text := fmt.Sprintf("provider %s did not answer %d times", at.Provider.ID, maxAsks)
	d.apply(Event{
		Kind: Again, Step: StepAcquire, Attempt: at.Number, Failure: NewFailure(CodeTimeout, at.Provider.ID, "acquire", text),
	}, now)
	return append([]DriverAction{{Release: &at}}, d.next(now)...)
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

// View is what the driver tells of its instance now, under its newest sequence.
func (d *Driver) View() View {
	i := &d.Instance
	v := View{
		Instance: i.Name, Generation: d.Generation, Sequence: d.Sequence, Phase: i.Phase, Attempt: i.Attempt,
		Refused: slices.Clone(i.Refused), Failure: i.Failure, Stuck: i.Stuck, Force: i.Force, Left: slices.Clone(d.Left),
		SpecHash: i.SpecHash, BookedAt: i.BookedAt,
	}
	if i.Offer != nil {
		v.Offer = &Offer{Name: i.Offer.Name, Provider: i.Offer.Provider, Credentials: i.Offer.Credentials}
	}
	return v
}

// Chosen is the view that Select tells with its choice, before the provider is asked.
func (v View) Chosen(o Offer) View {
	v.Phase, v.Attempt = Peering, v.Attempt+1
	v.Offer = &Offer{Name: o.Name, Provider: o.Provider, Credentials: o.Credentials}
	return v
}

// Joined is the view that Join tells when the Node is Ready.
func (v View) Joined() View {
	v.Phase, v.Failure, v.End = Ready, nil, EndFinal
	return v
}

// Returned is the view that Return tells when nothing is left.
func (v View) Returned() View {
	v.Phase, v.Stuck, v.End = Released, "", EndFinal
	return v
}
