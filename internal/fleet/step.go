package fleet

import "time"

// Bounds of what a group has under way at once; the rest waits in order.
const (
	maxUnnamed  = 50  // scale-outs that have named no provider; more are started when half of these have
	maxScaleIns = 100 // scale-ins on each provider that wait for pods: those stuck on a dead one hold no other up
	// silentAfter is how long a driver may be silent before it is looked at; checkBatch bounds one look.
	silentAfter = 2 * time.Minute
	checkBatch  = 100
	// Soon is when a workflow is looked at, or started again, that met an older run of its id.
	Soon = 5 * time.Second
)

// AskAfter is how long a driver waits, from its acquire or the ask before, until its group has it ask the provider
// again; the last of them holds for all that follow. As many requests in a row without an answer end the attempt.
var AskAfter = []time.Duration{30 * time.Second, 60 * time.Second, 120 * time.Second}

// GroupInput is one thing that happened to a group; the zero value is that time has passed.
type GroupInput struct {
	Views       []View
	Facts       []Fact
	Result      *Result
	Differences *Differences
	// Retry sets stuck instances free.
	Retry bool
}

// Step takes what happened and leaves in Commands what is to be done. It is pure: time and every result are inputs.
func (l *Ledger) Step(in GroupInput, now time.Time) {
	if d := in.Differences; d != nil && !l.Recovering && l.takes(*d) && l.Behind(d.Seen) {
		l.revert(d.Seen, now) // before anything is counted by a state that is past
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

// retry sets stuck instances free, and has drivers that shrink try at once.
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

// expire fails what waits too long to start, and releases failed instances that CA did not delete in time.
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

// expires is when the group moves the instance by itself; zero for never.
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

// drive starts the drivers that are missing, and tells the others what they must know.
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

// startScaleOuts starts the scale-outs that wait: all of them when there is room, else many together, because each
// batch costs its group an activity and a task.
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

// startScaleIns starts the scale-ins that wait: all that are forced, and of the others as many as there is room for
// beside those that run already, by provider.
func (l *Ledger) startScaleIns(running map[string]int, now time.Time) {
	for _, e := range l.Entries {
		waits := e.Driver.Kind == "" && e.Phase.Shrinking() && e.Stuck == ""
		if waits && (e.Force || running[e.Provider()] < maxScaleIns) {
			l.start(e, ScaleIn, now)
			running[e.Provider()]++
		}
	}
}

// running counts the scale-outs that have named no provider, and, by provider, the scale-ins whose Node may be there
// still: its drain has a budget, and what is left on the provider may take for ever.
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

// begins asks for the start of an instance's driver; first: none was ever started.
func (l *Ledger) begins(e *Entry, first bool) {
	l.Commands.Add(Command{Kind: CommandStart, Driver: e.Driver.Kind, Instance: e.Name, Generation: e.Driver.Generation,
		First: first})
	e.Driver.Start = l.Commands.Last
}

// silent is when the instance's driver is looked at; zero for never. One that is still to be started waits in our
// queues.
func (l *Ledger) silent(e *Entry) time.Time {
	if e.Driver.Kind == "" || l.Commands.Find(e.Driver.Start) != nil {
		return time.Time{}
	}
	return e.Driver.LastSeen.Add(silentAfter)
}

// inform forwards to the driver what it must know and was not told. One that is being started hears of it when it has
// been: an order would overtake the start, and nobody would hear it. That of another life of the group says first, by
// its view, what it is.
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

// remind has a driver ask its provider again, which has not answered for long. The driver runs no timer of its own: few
// wait so long. What the driver tells next sets the count back.
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

// DriverInput is what an instance's driver is started with; nil when the command is no longer wanted.
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
	in.Taken, in.Failures = map[string]int{}, l.Failures // what it remembers is made anew when it changes
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

// cappedSpec returns the entry's spec. Its maxPrice is at most the price that was booked for the instance.
func (e *Entry) cappedSpec() InstanceSpec {
	spec := *e.Spec
	if e.PriceCap > 0 && spec.Pays(e.PriceCap) {
		spec.MaxPrice = e.PriceCap
	}
	return spec
}

// check has the drivers looked at that were silent for long.
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

// Due is when Step must be called although nothing happened; zero for never.
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
			next = Earlier(next, soon) // one timer, armed now, will do for the ask as well
		}
		if !checking {
			next = Earlier(next, l.silent(e))
		}
	}
	return Earlier(next, l.standbyDue())
}
