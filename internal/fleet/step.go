package fleet

import "time"

// These constants bound the concurrent work of a group. Further work waits in order.
const (
	maxUnnamed  = 50  // scale-outs that have named no provider yet, see startScaleOuts
	maxScaleIns = 100 // scale-ins per provider that wait for pods, so that a dead provider does not block other providers
	// silentAfter is the time without a message after which the group checks a driver. checkBatch bounds the number of
	// drivers that one check examines.
	silentAfter = 2 * time.Minute
	checkBatch  = 100
	// Soon is the delay before a workflow is checked or started again, when an older run with its id exists.
	Soon = 5 * time.Second
)

// ResendAfter are the times after which the group orders a driver to repeat a request that its provider does not
// answer. Each time starts at the previous request, and the last time applies to all later requests. The
// attempt ends after len(ResendAfter) consecutive requests without an answer.
var ResendAfter = []time.Duration{30 * time.Second, 60 * time.Second, 120 * time.Second}

// GroupInput describes one thing that happened to a group. The zero value means that time has passed.
type GroupInput struct {
	Views       []View
	Facts       []Fact
	Result      *Result
	Differences *Differences
	// Retry lets stuck instances try again.
	Retry bool
}

// Step processes an event and appends the work for the workflow to Commands. It is pure: time and every result are
// inputs.
func (l *Ledger) Step(in GroupInput, now time.Time) {
	if d := in.Differences; d != nil && !l.Recovering && l.acceptsRound(*d) && l.Behind(d.Seen) {
		l.revert(d.Seen, now) // before the costs of an outdated state are counted
		in.Differences = nil
	}
	l.count(now)
	for _, v := range in.Views {
		l.applyView(v, now)
	}
	for _, f := range in.Facts {
		l.applyFact(f, now)
	}
	if in.Result != nil {
		l.applyResult(*in.Result, now)
	}
	l.endRecovery(now)
	l.catchUp(now)
	if in.Differences != nil && !l.Recovering {
		l.applyRound(*in.Differences, now)
	}
	if in.Retry {
		l.retry()
	}
	if !l.Recovering {
		l.expire(now)
		l.drive(now)
		l.check(now)
		l.startRecheck(now)
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

// expire marks instances whose start takes too long as failed, and releases failed instances that CA did not delete in
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

// expires returns the time at which the group itself changes the phase of an instance without a driver. It returns
// zero for never.
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

// drive starts the missing drivers, and sends the necessary orders to the running drivers.
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

// startScaleOuts starts the waiting scale-outs. If more scale-outs wait than the bound permits, startScaleOuts waits
// until it can start many together, because each batch costs an activity and a workflow task of the group.
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

// startScaleIns starts all waiting scale-ins that are forced. It starts as many of the other scale-ins as the bound
// per provider permits.
func (l *Ledger) startScaleIns(running map[string]int, now time.Time) {
	for _, e := range l.Entries {
		waits := e.Driver.Kind == "" && e.Phase.Shrinking() && e.Stuck == ""
		if waits && (e.Force || running[e.Provider()] < maxScaleIns) {
			l.start(e, ScaleIn, now)
			running[e.Provider()]++
		}
	}
}

// running counts the scale-outs that have not yet named a provider. It also counts, for each provider, the scale-ins
// that wait for pods. A scale-in counts only until its drain budget ends, because the removal of the remaining objects
// on the provider has no time limit.
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

// unnamed reports whether the instance has a scale-out that has named no provider since its start.
func (e *Entry) unnamed() bool { return e.Driver.Kind == ScaleOut && e.Phase == Pending }

func (l *Ledger) start(e *Entry, kind DriverKind, now time.Time) {
	l.Starts++
	e.Driver = DriverRef{Kind: kind, Generation: Generation{Epoch: l.Epoch, Count: l.Starts}, LastSeen: now}
	l.addStart(e, e.New && kind == ScaleOut)
	e.New = false
	l.changed(e)
}

// addStart adds the command that starts an instance's driver. first reports that no scale-out was ever started for the
// instance.
func (l *Ledger) addStart(e *Entry, first bool) {
	l.Commands.Add(Command{Kind: CommandStart, Driver: e.Driver.Kind, Instance: e.Name, Generation: e.Driver.Generation,
		First: first})
	e.Driver.Start = l.Commands.Last
}

// checkDue returns the time at which the group must check the instance's driver. It returns zero for never. The time
// for which a start waits in our queues does not count.
func (l *Ledger) checkDue(e *Entry) time.Time {
	if e.Driver.Kind == "" || l.Commands.Find(e.Driver.Start) != nil {
		return time.Time{}
	}
	return e.Driver.LastSeen.Add(silentAfter)
}

// inform sends the driver the facts that it has not received yet. It waits while the driver is being started, because
// an order could arrive before the start and be lost. A driver that was started before the group's reset must first
// send a view.
func (l *Ledger) inform(e *Entry) {
	if starting := l.Commands.Find(e.Driver.Start) != nil; starting || !e.Driver.Generation.Known() {
		return
	}
	want := Order{Deleted: e.Leaving && e.Driver.Kind == ScaleOut, Lost: e.Force && e.Driver.Kind == ScaleIn,
		Paused: l.isHalted(e) && e.Driver.Kind == ScaleOut}
	sent := e.Driver.Sent
	if want.Deleted && !sent.Deleted || want.Lost && !sent.Lost || want.Paused && !sent.Paused {
		e.Driver.Sent = want
		l.order(e, want)
	}
}

// remind makes a driver repeat the request to its provider when the provider has not answered for a while. The driver
// itself runs no timer, because few drivers wait so long. The driver's next view resets the count.
func (l *Ledger) remind(e *Entry, now time.Time) {
	d := &e.Driver
	if d.ResendAt.IsZero() || now.Before(d.ResendAt) {
		return
	}
	d.Resends++
	d.ResendAt = now.Add(ResendAfter[min(d.Resends, len(ResendAfter)-1)])
	l.order(e, Order{Resend: d.Resends, Attempt: e.Attempt})
}

func (l *Ledger) order(e *Entry, o Order) {
	o.Generation = e.Driver.Generation
	l.Commands.Add(Command{Kind: CommandOrder, Driver: e.Driver.Kind, Instance: e.Name, Order: &o})
}

// DriverInput returns the input of an instance's driver. It returns nil when the command is no longer valid.
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
	in.Taken, in.Failures = map[string]int{}, l.Failures // the ledger replaces l.Failures and never changes it in place
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

// cappedSpec returns the entry's spec with a maxPrice that is not above the price that was booked for the instance.
func (e *Entry) cappedSpec() InstanceSpec {
	spec := *e.Spec
	if e.PriceCap > 0 && spec.Pays(e.PriceCap) {
		spec.MaxPrice = e.PriceCap
	}
	return spec
}

// check starts a check of the drivers that have been silent for silentAfter.
func (l *Ledger) check(now time.Time) {
	if l.Commands.Has(CommandDescribe) {
		return
	}
	var names []string
	for _, e := range l.Entries {
		if due := l.checkDue(e); !due.IsZero() && !now.Before(due) && len(names) < checkBatch {
			names = append(names, e.Name)
		}
	}
	if len(names) > 0 {
		l.Commands.Add(Command{Kind: CommandDescribe, Instances: names})
	}
}

// Due returns the time at which the caller must call Step even if nothing else happens. It returns zero for never.
func (l *Ledger) Due(now time.Time) time.Time {
	next := l.Commands.Due(now)
	switch {
	case l.Recovering && l.listing():
		return next
	case l.Recovering:
		return Earlier(next, l.epochEnd())
	}
	checking := l.Commands.Has(CommandDescribe)
	for _, e := range l.Entries {
		next = Earlier(Earlier(next, e.expires()), e.Driver.ResendAt)
		if soon := e.Driver.LastSeen.Add(ResendAfter[0]); e.unnamed() && soon.After(now) {
			next = Earlier(next, soon) // set now, so that the same timer also serves to repeat the request
		}
		if !checking {
			next = Earlier(next, l.checkDue(e))
		}
	}
	return Earlier(next, l.standbyDue())
}
