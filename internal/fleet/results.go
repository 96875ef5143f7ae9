package fleet

import (
	"cmp"
	"slices"
	"time"
)

// applyResult processes the result of a command.
func (l *Ledger) applyResult(r Result, now time.Time) {
	cmd := l.Commands.Ended(r, now)
	if cmd == nil {
		return
	}
	switch cmd.Kind {
	case CommandRecover:
		l.applyRecovery(r.Found, now)
		l.inherit(r.Paused)
		l.closeGap(r.Bill, now)
	case CommandStart:
		l.applyStart(*cmd, r, now)
	case CommandOrder:
		l.applyOrder(*cmd, r, now)
	case CommandDescribe:
		l.applyCheck(*cmd, r.Drivers, now)
	case CommandInspect:
		l.applyInspection(cmd.Instances, r.Found, r.Empty, now)
	case CommandStandby:
		l.applyRanking(r.Standby, now)
	case CommandUndo, CommandAnswer, CommandPeering, CommandUnpeering, CommandCancel, CommandRefusal, CommandHold,
		CommandSave:
	}
}

// applyStart processes the outcome of a start. If a run already existed, applyStart schedules a check of the driver.
// An earlier try of this start may have started that run, or the run may be older, or its last view may be in the
// group's inbox.
func (l *Ledger) applyStart(cmd Command, r Result, now time.Time) {
	e := l.Find(cmd.Instance)
	if e == nil || e.Driver.Generation != cmd.Generation || e.Driver.Kind == "" {
		return
	}
	if e.Driver.LastSeen = now; r.Outcome == OutcomeAlreadyStarted {
		l.suspect(e, now)
	}
}

// applyOrder schedules a check of a driver that could not receive an order: the driver's last view is in the group's
// inbox, or the driver was terminated.
func (l *Ledger) applyOrder(cmd Command, r Result, now time.Time) {
	e := l.Find(cmd.Instance)
	if e != nil && r.Outcome != OutcomeDone && e.Driver.Generation == cmd.Order.Generation {
		l.suspect(e, now)
	}
}

// suspect schedules a check of the driver in a few seconds.
func (l *Ledger) suspect(e *Entry, now time.Time) { e.Driver.LastSeen = now.Add(Soon - silentAfter) }

// applyCheck replaces the drivers that closed without a last view, or that cannot continue. If BuildFails reports that
// the worker's build is to blame, applyCheck does not replace drivers whose workflow tasks fail.
func (l *Ledger) applyCheck(cmd Command, all []DriverStatus, now time.Time) {
	build := BuildFails(all)
	l.condition(build)
	for _, s := range all {
		e := l.Find(s.Instance)
		if e == nil || e.Driver.Kind == "" || e.Driver.Start > cmd.ID { // the driver was started after the check
			continue
		}
		if s.Running && (!s.Failing || build) {
			e.Driver.Sent.Paused = false // the driver may have started after the order was sent
			if e.Driver.LastSeen = now; e.Driver.Stopped {
				l.suspect(e, now)
			} else if !e.Driver.Generation.Known() && e.Phase.Shrinking() {
				l.order(e, Order{Stop: true})
			}
			continue
		}
		l.replace(e, s, now)
	}
}

// BuildFails reports whether so many drivers fail their workflow tasks that the worker's build is to blame: more than
// three, and more than a tenth of all.
func BuildFails(all []DriverStatus) bool {
	failing := 0
	for _, s := range all {
		if s.Failing {
			failing++
		}
	}
	return failing > 3 && failing*10 > len(all)
}

func (l *Ledger) condition(build bool) {
	text := ""
	if build {
		text = "many drivers fail their workflow tasks: this worker's build cannot continue them; none is replaced"
	}
	if l.Condition != text {
		l.Condition = text
		l.Revision++
	}
}

// replace starts another driver for an instance whose driver is gone, based on the existing objects. A marked and
// stamped Node makes the instance Ready. Otherwise a scale-out continues with the attempt after the last reported one,
// and a scale-in starts again.
func (l *Ledger) replace(e *Entry, s DriverStatus, now time.Time) {
	from, kind := e.Phase, e.Driver.Kind
	adopted := !e.Driver.Generation.Known() && !e.Leaving
	e.Driver = e.Driver.ended()
	l.drop(CommandOrder, e)
	switch whole := s.Found != nil && s.Found.Whole() && s.Found.Attempt.Number > e.Undone; {
	case kind == ScaleIn && s.Completed:
		e.enter(Released, now)
	case e.Phase.Shrinking() && !(adopted && whole): // a scale-in starts, or starts again
	case whole:
		e.setReady(*s.Found, now)
	case s.Completed: // the workflow id cannot be used again
		e.adoptNewer(s.Found)
		e.Leaving = true
		if e.enter(Unpeering, now); e.Attempt == 0 { // the instance has found no provider
			e.enter(Released, now)
		}
	default:
		reported := e.AttemptRef()
		e.adoptNewer(s.Found)
		l.undo(e, reported, e.AttemptRef())
		e.enter(Pending, now)
	}
	l.changed(e)
	l.moved(e, from, "replaced", nil)
}

// setReady makes the instance Ready with the finished attempt f.
func (e *Entry) setReady(f Found, now time.Time) {
	e.Attempt, e.Offer, e.Failure = f.Attempt.Number, f.Offer(), nil
	e.ready(f.Ready, now)
	e.enter(Ready, now)
}

// adoptNewer adopts an existing attempt that no view has reported.
func (e *Entry) adoptNewer(f *Found) {
	if f != nil && f.Attempt.Number > e.Attempt {
		e.Attempt, e.Offer = f.Attempt.Number, f.Offer()
	}
}

// Whole reports whether the attempt has a finished Node: marked, stamped and not terminating.
func (f Found) Whole() bool { return f.Marked && f.Stamped && !f.Terminating }

// adoptable reports whether the attempt is finished and has a booking, so that a recovery can book it.
func (f Found) adoptable() bool { return f.Whole() && f.Booking != nil }

// Offer returns the known part of the offer that the attempt used.
func (f Found) Offer() *Offer {
	p := f.Attempt.Provider
	return &Offer{Name: p.ID, Provider: p.ID, Credentials: p.Credentials, Hourly: f.booked().Hourly}
}

// applyRecovery creates entries from the existing objects. If an instance has a finished attempt, the newest finished
// attempt makes it Ready. Otherwise its newest attempt decides: the instance is Joining if the attempt was being
// created, and Draining if not, because it is unknown whether CA still needs it. All other attempts are undone.
// Objects without a readable booking stay unchanged, and an operator must decide about them.
func (l *Ledger) applyRecovery(found []Found, now time.Time) {
	deciding := map[string]Found{}
	for _, f := range found {
		best, known := deciding[f.Attempt.Instance]
		if whole := f.adoptable(); !known || whole && !best.adoptable() ||
			whole == best.adoptable() && f.Attempt.Number > best.Attempt.Number {
			deciding[f.Attempt.Instance] = f
		}
	}
	oldestFirst := func(a, b Found) int {
		return cmp.Or(a.booked().BookedAt.Compare(b.booked().BookedAt),
			cmp.Compare(a.Attempt.ObjectName(), b.Attempt.ObjectName()))
	}
	for _, f := range slices.SortedStableFunc(slices.Values(found), oldestFirst) {
		switch {
		case f.Attempt.Number != deciding[f.Attempt.Instance].Attempt.Number:
			l.undoAttempt(f.Attempt)
		case f.Booking != nil:
			l.adopt(f, now)
		}
	}
}

// endRecovery ends the recovery when the existing objects are listed and the second in which the epoch began has
// ended.
func (l *Ledger) endRecovery(now time.Time) {
	if !l.Recovering || l.listing() || now.Before(l.epochEnd()) {
		return
	}
	l.Recovering = false
	l.Revision++
}

// catchUp processes the views that arrived before the group could process them: during its recovery, or before it had a
// spec.
func (l *Ledger) catchUp(now time.Time) {
	if l.Recovering || l.Spec == nil {
		return
	}
	waiting := l.Waiting
	l.Waiting = nil
	for _, v := range waiting {
		l.applyView(v, now)
	}
}

// listing reports whether the existing objects are being listed.
func (l *Ledger) listing() bool { return l.Commands.Has(CommandRecover) }

// booked returns the booking. It returns the zero value when the booking is missing or unreadable.
func (f Found) booked() (b Booking) {
	if f.Booking != nil {
		b = *f.Booking
	}
	return b
}

// adopt books an instance from its existing objects.
func (l *Ledger) adopt(f Found, now time.Time) {
	spec := f.Booking.Spec
	spec.Budgets = spec.Budgets.WithDefaults()
	i := NewInstance(f.Attempt.Instance, &spec, now)
	i.BookedAt, i.Attempt, i.Offer = f.Booking.BookedAt, f.Attempt.Number, f.Offer()
	switch {
	case f.Whole():
		i.Phase, i.Registered = Ready, true
		i.ready(f.Ready, now)
	case f.Node && !f.Stamped && !f.Terminating && f.Slice && !i.Deadline().Before(now):
		// The attempt was being created. Join marks the VirtualNode before it stamps the Node, so a stamped Node
		// without the mark is being removed.
		i.Phase = Joining
	default:
		i.Phase = Draining // if its scale-out still runs, it may later report that the instance is Ready
	}
	e := l.add(i)
	e.Settled = !f.Slice  // a node without a slice causes no costs
	if i.Phase != Ready { // the scale-out that the group started before its reset may still run
		e.Driver = DriverRef{Kind: ScaleOut, LastSeen: now.Add(-silentAfter)}
	}
}
