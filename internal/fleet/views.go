package fleet

import (
	"slices"
	"time"
)

// take applies one view. There is one writer at any time: a view of an older generation, or of an instance that is
// unknown or released, is answered with stop.
func (l *Ledger) take(v View, now time.Time) {
	if !l.Recovering && l.ahead(v.Generation) {
		l.beginAnew(v.Generation.Epoch, now)
	}
	e := l.Find(v.Instance)
	switch {
	case l.Recovering || l.Spec == nil:
		l.Waiting = append(l.Waiting, v)
	case e == nil && l.takesBack(v):
		l.takeBack(v, now)
	case e == nil:
		l.stopUnknown(v)
	case e.wentOn(v):
		l.goesOn(e, v, now)
	case v.Generation == e.Driver.Generation:
		l.current(e, v, now)
	default:
		l.outdated(e, v, now)
	}
}

// wentOn reports whether the view is of a driver that went on when its group began anew.
func (e *Entry) wentOn(v View) bool {
	return !e.Driver.Generation.Known() && e.Driver.Kind != "" && (e.Phase.Growing() || !v.Phase.Growing())
}

// goesOn takes a view of such a driver, unless it comes late: what exists is of a later attempt.
func (l *Ledger) goesOn(e *Entry, v View, now time.Time) {
	if v.Attempt >= e.Attempt || v.End != EndNone {
		e.Driver.Generation = v.Generation
		l.accept(e, v, now)
	}
}

// current takes a view of the instance's own driver.
func (l *Ledger) current(e *Entry, v View, now time.Time) {
	switch {
	case e.Driver.Kind == "":
		if v.End == EndNone { // its start came once more when it was over, or the view is late
			l.stop(v)
		}
	case e.Driver.isOtherRun(v): // nobody noticed that the first one was terminated: whichever runs is ended
		if l.suspect(e, now); v.End == EndNone {
			l.stop(v)
		}
	case v.Sequence > e.Driver.Sequence:
		l.accept(e, v, now)
	case v.End == EndStopped: // an operator reset it: it is over, and knows less than it told before
		l.suspect(e, now)
	}
}

// isOtherRun reports whether the view is of another run of the driver than those before.
func (d DriverRef) isOtherRun(v View) bool {
	return !d.Began.IsZero() && !v.Began.IsZero() && !v.Began.Equal(d.Began)
}

// ahead reports whether a generation is one that this ledger has not counted yet: its history went back.
func (l *Ledger) ahead(g Generation) bool { return Generation{l.Epoch, l.Starts}.Before(g) }

// accept makes the view the instance's state. The group has the last word when the driver has ended.
func (l *Ledger) accept(e *Entry, v View, now time.Time) {
	from, attempt := e.Phase, e.Attempt
	l.drop(CommandStart, e) // it runs: one started once more would begin in the middle of what it knows nothing of
	e.Driver.Sequence, e.Driver.Began, e.Driver.LastSeen = v.Sequence, v.Began, now
	e.Driver.Resends, e.Driver.ResendAt = 0, time.Time{}
	v = e.atLeast(v)
	l.failed(e.Failure, v.Failure, now)
	e.Attempt, e.Offer, e.Refused, e.Failure, e.Stuck = v.Attempt, v.Offer, v.Refused, v.Failure, v.Stuck
	e.Force = e.Force || v.Force
	if v.Phase != e.Phase {
		e.enter(v.Phase, now)
	}
	l.chose(e, v, attempt, now)
	l.undo(e, v.Abandoned...)
	switch {
	case v.replaced():
		e.Driver.Stopped = true
		e.Driver.LastSeen = now.Add(-silentAfter)
		l.drop(CommandOrder, e)
	case v.End != EndNone:
		e.Driver = e.Driver.ended()
		l.drop(CommandOrder, e)
	case v.Phase == Peering:
		e.Driver.Sent.Paused = false // it may have gone on by an earlier grant
		e.Driver.ResendAt = now.Add(AskAfter[0])
	}
	l.changed(e)
	if e.Phase != from || e.Attempt != attempt || e.Stuck != "" {
		l.moved(e, from, "view", v.Failure)
	}
}

// atLeast is the view under the attempt that was told before, when that is a later one: by a step that was called off,
// or by a driver before it was reset.
func (e *Entry) atLeast(v View) View {
	if v.Attempt < e.Attempt {
		if !v.replaced() {
			v.Abandoned = append(slices.Clone(v.Abandoned), e.AttemptRef())
		}
		v.Attempt, v.Offer = e.Attempt, e.Offer
	}
	return v
}

// replaced reports whether the driver is over before its work is done. One that was reset does not know how far it
// came: what exists decides, and nothing is undone before.
func (v View) replaced() bool { return v.End == EndStopped && v.Phase.Growing() }

// drop takes back the commands of a kind to an instance's driver that have not been carried out.
func (l *Ledger) drop(kind CommandKind, e *Entry) {
	l.Commands.Drop(func(c Command) bool { return c.Kind == kind && c.Instance == e.Name })
}

// outdated answers a driver of another generation than the current one. Once it has ended, what it names is undone, and
// the start that met it is asked for again.
func (l *Ledger) outdated(e *Entry, v View, now time.Time) {
	switch {
	case v.End == EndNone:
		l.stop(v)
		return
	case v.Phase == Released && e.Phase.Shrinking():
		from := e.Phase
		e.Driver = e.Driver.ended()
		e.enter(Released, now)
		l.changed(e)
		l.moved(e, from, "view", nil)
		return
	case e.Phase.Shrinking(): // what it made is the scale-in's to take back
		l.undo(e, v.Abandoned...)
	case v.End == EndStopped && (e.Phase != Ready || v.Attempt != e.Attempt):
		l.undo(e, append(slices.Clone(v.Abandoned), v.attempt(l.Group))...)
	}
	if !e.Driver.Generation.Known() {
		e.endedEarlier(v, now)
	}
	if v.Attempt > e.Attempt && e.Phase != Ready {
		e.Attempt, e.Offer = v.Attempt, v.Offer
	}
	l.changed(e)
	l.beginsAgain(e)
}

// endedEarlier takes the end of a driver that ran when the group began anew. One that was stopped on its way may have
// joined since what exists was listed: it is looked at first.
func (e *Entry) endedEarlier(v View, now time.Time) {
	if e.Driver.Kind != "" && v.replaced() && v.Phase == Joining && !e.Leaving {
		e.Driver.Stopped, e.Driver.LastSeen = true, now.Add(-silentAfter)
		return
	}
	e.Driver = DriverRef{}
}

// beginsAgain asks for the start of a driver that has not told anything yet.
func (l *Ledger) beginsAgain(e *Entry) {
	if e.Driver.Kind != "" && e.Driver.Generation.Known() && e.Driver.Sequence == 0 {
		l.drop(CommandStart, e)
		l.begins(e, false)
	}
}

// stopUnknown answers the driver of an instance that the group does not know. What its attempt may have made is left to
// the observer, which adopts what is finished: a driver that was reset does not know how far it came.
func (l *Ledger) stopUnknown(v View) {
	if v.End == EndNone {
		l.stop(v)
		return
	}
	for _, at := range v.Abandoned {
		l.undoAttempt(at)
	}
	if v.Phase.Shrinking() {
		l.undoAttempt(v.attempt(l.Group))
	}
}

func (l *Ledger) stop(v View) {
	l.Commands.Add(Command{Kind: CommandOrder, Driver: v.driver(), Instance: v.Instance,
		Order: &Order{Generation: v.Generation, Stop: true}})
}

// takesBack reports whether an unknown instance is driven since an earlier epoch, still grows or just became Ready, was
// never released in this one, and is not being undone. One that still grows must fit below max, and be of an epoch
// whose history was not reverted. A Ready instance is adopted, because existing objects decide.
func (l *Ledger) takesBack(v View) bool {
	if !isInstanceOf(v.Instance, l.Group) || !EpochBefore(v.Generation.Epoch, l.Epoch) || l.Recovering ||
		l.wasReleased(v.Instance) || l.undoes(v.attempt(l.Group)) || l.Spec == nil ||
		l.Spec.InstanceSpec.Hash() != v.SpecHash {
		return false
	}
	return l.mayGrowBy(v) || v.Phase == Ready && v.End == EndFinal
}

// mayGrowBy reports whether the driver of a view that this ledger does not know may go on.
func (l *Ledger) mayGrowBy(v View) bool {
	return v.Phase.Growing() && v.End == EndNone && l.Target() < l.Spec.Max &&
		EpochBefore(l.Reverted, v.Generation.Epoch)
}

func (l *Ledger) takeBack(v View, now time.Time) {
	i := NewInstance(v.Instance, &l.Spec.InstanceSpec, now)
	i.BookedAt = v.BookedAt
	e := l.add(i)
	e.Driver = DriverRef{Kind: ScaleOut, Generation: v.Generation}
	l.accept(e, v, now)
}

// driver is the kind of workflow that tells the view.
func (v View) driver() DriverKind {
	if v.Phase.Shrinking() {
		return ScaleIn
	}
	return ScaleOut
}

func (v View) attempt(group string) Attempt {
	return Attempt{Group: group, Instance: v.Instance, Number: v.Attempt, Provider: v.Offer.from()}
}

// Chosen is the view that Select tells with its choice, before the provider is asked.
func (v View) Chosen(o Offer) View {
	v.Phase, v.Attempt, v.Offer = Peering, v.Attempt+1, o.Told()
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

// undo has what attempts may have left behind taken back, each once.
func (l *Ledger) undo(e *Entry, left ...Attempt) {
	before := e.Undone
	for _, at := range left {
		if at.Number > before {
			l.undoAttempt(at)
		}
		e.Undone = max(e.Undone, at.Number)
	}
}

func (l *Ledger) undoAttempt(at Attempt) {
	if at.Number > 0 && !l.undoes(at) {
		l.Commands.Add(Command{Kind: CommandUndo, Attempt: &at})
	}
}

// undoes reports whether the attempt's undo is being started.
func (l *Ledger) undoes(at Attempt) bool {
	return slices.ContainsFunc(l.Commands.Open, func(c Command) bool {
		return c.Kind == CommandUndo && c.Attempt.ObjectName() == at.ObjectName()
	})
}
