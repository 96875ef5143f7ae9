package fleet

import "time"

// These constants bound the concurrent work of a group. The rest waits in order.
const (
	maxUnnamed  = 50  // scale-outs that have named no provider; more are started when half of these have
	maxScaleIns = 100 // scale-ins per provider that wait for pods: a dead provider does not block other ones
	// silentAfter is the time without a message after which a driver is checked; checkBatch bounds one check.
	silentAfter = 2 * time.Minute
	checkBatch  = 100
	// Soon is the pause before a workflow that met an older run of its id is checked or started again.
	Soon = 5 * time.Second
)

// AskAfter holds the times for which a driver waits for the provider's answer before its group makes it repeat the
// request. Each time starts at the previous request, and the last time applies to all later requests. As many
// consecutive requests without an answer end the attempt.
var AskAfter = []time.Duration{30 * time.Second, 60 * time.Second, 120 * time.Second}

// GroupInput describes one thing that happened to a group. The zero value means that time has passed.
type GroupInput struct {
	Views       []View
	Facts       []Fact
	Result      *Result
	Differences *Differences
	// Retry releases stuck instances for another try.
	Retry bool
}

// Step processes an event and leaves the work for the workflow in Commands. It is pure: time and every result are
// inputs.
func (l *Ledger) Step(in GroupInput, now time.Time) {
	if d := in.Differences; d != nil && !l.Recovering && l.takes(*d) && l.Behind(d.Seen) {
		l.revert(d.Seen, now) // before an outdated state is counted
		in.Differences = nil
	}
	l.count(now)
	for _, v := range in.Views {
		l.take(v, now)
	}
	for _, f := range in.Facts {
		l.learn(f, now)
	}
	if in.Result != nil {
		l.result(*in.Result, now)
	}
	l.begin(now)
	l.catchUp(now)
	if in.Differences != nil && !l.Recovering {
		l.compared(*in.Differences, now)
	}
	if in.Retry {
		l.retry()
	}
	if !l.Recovering {
		l.expire(now)
		l.drive(now)
		l.check(now)
		l.lookAtDoubtful(now)
		l.keepStandby(now)
		l.sweep(now)
		l.meter(now)
	}
}

// retry lets stuck instances continue, and makes scale-ins try again immediately.
func (l *Ledger) retry() {
	for _, e := range l.Entries {
		switch {
		case e.Stuck != "":
			e.Stuck = ""
			l.changed(e)
		case e.Driver.Kind == ScaleIn:
			l.order(e, Order{Retry: true})
		}
	}
}

// expire fails instances that wait too long for their start, and releases failed instances that CA did not delete in
// time.
func (l *Ledger) expire(now time.Time) {
	for _, e := range l.Entries {
		switch due := e.expires(); {
		case due.IsZero() || now.Before(due):
		case e.Phase == Failed:
			l.apply(e, Event{Kind: Expired}, now)
		default:
			f := NewFailure(CodeTimeout, "", "", "no scale-out could be started within the instance's budget")
			l.apply(e, Event{Kind: Deadline, Failure: f}, now)
		}
	}
}

// expires returns the time at which the group moves the instance without a driver; zero for never.
func (e *Entry) expires() time.Time {
	switch {
	case e.Phase == Failed && e.Driver.Kind == "":
		return e.Since.Add(e.Spec.Budgets.WithDefaults().FailedTTL.Duration)
	case e.Phase == Pending && e.Driver.Kind == "":
		return e.Deadline()
	default:
		return time.Time{}
	}
}

// drive starts the missing drivers, and sends the running ones the orders that they need.
func (l *Ledger) drive(now time.Time) {
	outs, ins := l.running(now)
	for _, e := range l.Entries {
		if e.Driver.Kind != "" {
			l.inform(e)
			l.remind(e, now)
			continue
		}
		if e.Leaving && !e.Phase.Shrinking() {
			l.apply(e, Event{Kind: Deleted}, now)
		}
		if l.isHalted(e) && e.Phase == Pending {
			l.apply(e, Event{Kind: Paused, Failure: PausedFailure(l.Group)}, now)
		}
	}
	l.startScaleOuts(outs, now)
	l.startScaleIns(ins, now)
}

// startScaleOuts starts the waiting scale-outs: all if they fit, else many together, because each batch costs its group
// an activity and a task.
func (l *Ledger) startScaleOuts(running int, now time.Time) {
	var waiting []*Entry
	for _, e := range l.Entries {
		if e.Driver.Kind == "" && e.Phase == Pending {
			waiting = append(waiting, e)
		}
	}
	room := max(maxUnnamed-running, 0)
	if len(waiting) > room && running > maxUnnamed/2 {
		return
	}
	for _, e := range waiting[:min(room, len(waiting))] {
		l.start(e, ScaleOut, now)
	}
}

// startScaleIns starts the waiting scale-ins: all forced ones, and as many of the other ones as the bound per provider
// permits.
func (l *Ledger) startScaleIns(running map[string]int, now time.Time) {
	for _, e := range l.Entries {
		waits := e.Driver.Kind == "" && e.Phase.Shrinking() && e.Stuck == ""
		if waits && (e.Force || running[e.Provider()] < maxScaleIns) {
			l.start(e, ScaleIn, now)
			running[e.Provider()]++
		}
	}
}

// running counts the scale-outs without a provider and, by provider, the scale-ins whose Node may still exist. A drain
// has a budget, but the removal of the remaining objects on the provider has no time limit.
func (l *Ledger) running(now time.Time) (unnamed int, ins map[string]int) {
	ins = map[string]int{}
	for _, e := range l.Entries {
		switch {
		case e.unnamed():
			unnamed++
		case e.Driver.Kind == ScaleIn && !e.Force && now.Sub(e.Since) < e.Spec.Budgets.WithDefaults().Drain.Duration:
			ins[e.Provider()]++
		}
	}
	return unnamed, ins
}

// unnamed reports whether a scale-out runs that has named no provider since it was started.
func (e *Entry) unnamed() bool { return e.Driver.Kind == ScaleOut && e.Phase == Pending }

func (l *Ledger) start(e *Entry, kind DriverKind, now time.Time) {
	l.Starts++
	e.Driver = DriverRef{Kind: kind, Generation: Generation{Epoch: l.Epoch, Count: l.Starts}, LastSeen: now}
	l.begins(e, e.New && kind == ScaleOut)
	e.New = false
	l.changed(e)
}

// begins adds the command that starts an instance's driver. first reports that no driver was ever started before.
func (l *Ledger) begins(e *Entry, first bool) {
	l.Commands.Add(Command{Kind: CommandStart, Driver: e.Driver.Kind, Instance: e.Name, Generation: e.Driver.Generation,
		First: first})
	e.Driver.Start = l.Commands.Last
}

// silent returns the time at which the instance's driver is checked; zero for never. The time that a driver waits for
// its start in our queues does not count.
func (l *Ledger) silent(e *Entry) time.Time {
	if e.Driver.Kind == "" || l.Commands.Find(e.Driver.Start) != nil {
		return time.Time{}
	}
	return e.Driver.LastSeen.Add(silentAfter)
}

// inform sends the driver new facts that it has not received. A driver that is being started gets them after its start,
// because an order could arrive before the start and be lost. A driver of another life of the group must first send a
// view.
func (l *Ledger) inform(e *Entry) {
	if starting := l.Commands.Find(e.Driver.Start) != nil; starting || !e.Driver.Generation.Known() {
		return
	}
	want := Order{Deleted: e.Leaving && e.Driver.Kind == ScaleOut, Lost: e.Force && e.Driver.Kind == ScaleIn,
		Paused: l.isHalted(e) && e.Driver.Kind == ScaleOut}
	told := e.Driver.Sent
	if want.Deleted && !told.Deleted || want.Lost && !told.Lost || want.Paused && !told.Paused {
		e.Driver.Sent = want
		l.order(e, want)
	}
}

// remind makes a driver repeat the request to its provider, which has not answered for long. The driver runs no timer
// of its own, because few drivers wait so long. The driver's next view resets the count.
func (l *Ledger) remind(e *Entry, now time.Time) {
	d := &e.Driver
	if d.ResendAt.IsZero() || now.Before(d.ResendAt) {
		return
	}
	d.Resends++
	d.ResendAt = now.Add(AskAfter[min(d.Resends, len(AskAfter)-1)])
	l.order(e, Order{Resend: d.Resends, Attempt: e.Attempt})
}

func (l *Ledger) order(e *Entry, o Order) {
	o.Generation = e.Driver.Generation
	l.Commands.Add(Command{Kind: CommandOrder, Driver: e.Driver.Kind, Instance: e.Name, Order: &o})
}

// DriverInput returns the input of an instance's driver; nil when the command is no longer valid.
func (l *Ledger) DriverInput(cmd Command) *DriverInput {
	e := l.Find(cmd.Instance)
	if e == nil || e.Driver.Generation != cmd.Generation {
		return nil
	}
	in := &DriverInput{Instance: e.Instance, Spec: e.cappedSpec(), Generation: cmd.Generation}
	if cmd.Driver == ScaleIn {
		return in
	}
	in.First = cmd.First
	in.Taken, in.Failures = map[string]int{}, l.Failures // l.Failures is never changed in place
	for _, other := range l.Entries {
		switch {
		case other == e || other.Phase == Failed:
		case other.unnamed() && other.Driver.Generation.Before(cmd.Generation):
			in.Ahead++
		case other.Provider() != "" && !other.unnamed():
			in.Taken[other.Provider()]++
		}
	}
	return in
}

// cappedSpec returns the entry's spec with a maxPrice of at most the price that was booked for the instance.
func (e *Entry) cappedSpec() InstanceSpec {
	spec := *e.Spec
	if e.PriceCap > 0 && spec.Pays(e.PriceCap) {
		spec.MaxPrice = e.PriceCap
	}
	return spec
}

// check starts a check of the drivers that were silent for long.
func (l *Ledger) check(now time.Time) {
	if l.Commands.Has(CommandDescribe) {
		return
	}
	var names []string
	for _, e := range l.Entries {
		if due := l.silent(e); !due.IsZero() && !now.Before(due) && len(names) < checkBatch {
			names = append(names, e.Name)
		}
	}
	if len(names) > 0 {
		l.Commands.Add(Command{Kind: CommandDescribe, Instances: names})
	}
}

// Due returns the time at which Step must be called even if nothing happens; zero for never.
func (l *Ledger) Due(now time.Time) time.Time {
	next := l.Commands.Due(now)
	switch {
	case l.Recovering && l.listing():
		return next
	case l.Recovering:
		return Earlier(next, l.epochOver())
	}
	checking := l.Commands.Has(CommandDescribe)
	for _, e := range l.Entries {
		next = Earlier(Earlier(next, e.expires()), e.Driver.ResendAt)
		if soon := e.Driver.LastSeen.Add(AskAfter[0]); e.unnamed() && soon.After(now) {
			next = Earlier(next, soon) // one timer, set now, also serves the repeated request
		}
		if !checking {
			next = Earlier(next, l.silent(e))
		}
	}
	return Earlier(next, l.standbyDue())
}
