package fleet

import (
	"slices"
	"time"
)

// applyView applies one view. An instance has one writer at any time. Therefore the group stops a driver whose view
// has an older generation, or belongs to an unknown or released instance.
func (l *Ledger) applyView(v View, now time.Time) {
	if !l.Recovering && l.ahead(v.Generation) {
		l.restart(v.Generation.Epoch, now)
	}
	e := l.Find(v.Instance)
	switch {
	case l.Recovering || l.Spec == nil:
		l.Waiting = append(l.Waiting, v)
	case e == nil && l.mayAdopt(v):
		l.adoptFromView(v, now)
	case e == nil:
		l.stopUnknown(v)
	case e.continues(v):
		l.applyContinued(e, v, now)
	case v.Generation == e.Driver.Generation:
		l.applyCurrent(e, v, now)
	default:
		l.applyOutdated(e, v, now)
	}
}

// continues reports whether the view comes from a driver that continued while its group was reset.
func (e *Entry) continues(v View) bool {
	return !e.Driver.Generation.Known() && e.Driver.Kind != "" && (e.Phase.Growing() || !v.Phase.Growing())
}

// applyContinued applies a view of a driver that continued while its group was reset. It ignores a view of an earlier
// attempt than the attempt to which the existing objects belong.
func (l *Ledger) applyContinued(e *Entry, v View, now time.Time) {
	if v.Attempt >= e.Attempt || v.End != EndNone {
		e.Driver.Generation = v.Generation
		l.accept(e, v, now)
	}
}

// applyCurrent applies a view of the instance's own driver.
func (l *Ledger) applyCurrent(e *Entry, v View, now time.Time) {
	switch {
	case e.Driver.Kind == "":
		if v.End == EndNone { // the driver's start was repeated after its end, or the view is late
			l.stop(v)
		}
	case e.Driver.isOtherRun(v): // the first run was terminated without a last view: stop the present run
		if l.suspect(e, now); v.End == EndNone {
			l.stop(v)
		}
	case v.Sequence > e.Driver.Sequence:
		l.accept(e, v, now)
	case v.End == EndStopped: // an operator reset the driver: it has ended, with less progress than before
		l.suspect(e, now)
	}
}

// isOtherRun reports whether the view comes from a run of the driver that did not send the earlier views.
func (d DriverRef) isOtherRun(v View) bool {
	return !d.Began.IsZero() && !v.Began.IsZero() && !v.Began.Equal(d.Began)
}

// ahead reports whether the generation is newer than all generations of this ledger. If it is, the ledger's history
// was reverted.
func (l *Ledger) ahead(g Generation) bool { return Generation{l.Epoch, l.Starts}.Before(g) }

// accept copies the view into the instance's state. After the driver's end only the group changes the instance.
func (l *Ledger) accept(e *Entry, v View, now time.Time) {
	from, attempt := e.Phase, e.Attempt
	l.drop(CommandStart, e) // the driver runs: a repeated start would lack its state
	e.Driver.Sequence, e.Driver.Began, e.Driver.LastSeen = v.Sequence, v.Began, now
	e.Driver.Resends, e.Driver.ResendAt = 0, time.Time{}
	v = e.atLeast(v)
	l.recordFailure(e.Failure, v.Failure, now)
	e.Attempt, e.Offer, e.Refused, e.Failure, e.Stuck = v.Attempt, v.Offer, v.Refused, v.Failure, v.Stuck
	e.Force = e.Force || v.Force
	if v.Phase != e.Phase {
		e.enter(v.Phase, now)
	}
	l.recordChoice(e, v, attempt, now)
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
		e.Driver.Sent.Paused = false // an earlier grant may have reached it before the order
		e.Driver.ResendAt = now.Add(ResendAfter[0])
	}
	l.changed(e)
	if e.Phase != from || e.Attempt != attempt || e.Stuck != "" {
		l.moved(e, from, "view", v.Failure)
	}
}

// atLeast returns the view, with the previously reported attempt if that attempt is later. A cancelled step, or the
// driver before its reset, has reported the later attempt.
func (e *Entry) atLeast(v View) View {
	if v.Attempt < e.Attempt {
		if !v.replaced() {
			v.Abandoned = append(slices.Clone(v.Abandoned), e.AttemptRef())
		}
		v.Attempt, v.Offer = e.Attempt, e.Offer
	}
	return v
}

// replaced reports whether the driver ended before its work was done. A driver that was reset does not know its
// progress. Therefore the group reads the existing objects before it undoes anything.
func (v View) replaced() bool { return v.End == EndStopped && v.Phase.Growing() }

// drop removes the open commands of a kind for an instance's driver.
func (l *Ledger) drop(kind CommandKind, e *Entry) {
	l.Commands.Drop(func(c Command) bool { return c.Kind == kind && c.Instance == e.Name })
}

// applyOutdated processes a view whose generation is not the current one. It stops a running driver. After the
// driver's end it undoes the driver's attempts, and repeats the start that the driver has blocked.
func (l *Ledger) applyOutdated(e *Entry, v View, now time.Time) {
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
	case e.Phase.Shrinking(): // the scale-in removes the objects of the driver's last attempt
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
	l.repeatStart(e)
}

// endedEarlier processes the end of a driver that ran while the group was reset. The node of a driver that was stopped
// during its Join may have become complete since the group listed the objects, so the group checks the driver first.
func (e *Entry) endedEarlier(v View, now time.Time) {
	if e.Driver.Kind != "" && v.replaced() && v.Phase == Joining && !e.Leaving {
		e.Driver.Stopped, e.Driver.LastSeen = true, now.Add(-silentAfter)
		return
	}
	e.Driver = DriverRef{}
}

// repeatStart repeats the start of a driver that has not reported anything yet.
func (l *Ledger) repeatStart(e *Entry) {
	if e.Driver.Kind != "" && e.Driver.Generation.Known() && e.Driver.Sequence == 0 {
		l.drop(CommandStart, e)
		l.addStart(e, false)
	}
}

// stopUnknown stops the driver of an instance that the group does not know. After the driver's end the group undoes
// only the driver's abandoned attempts and, if the driver was a scale-in, the attempt that it removed. The observer
// handles all other objects and adopts a finished node, because a driver that was reset does not know its progress.
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

// mayAdopt reports whether the group adopts an unknown instance from its driver's view. The driver must belong to an
// earlier epoch. Its scale-out must run, or must just have made the instance Ready. The instance must not have been
// released in this epoch, and no undo of its attempt may have been requested. If the scale-out still runs, the
// instance must fit below max, and the driver's epoch must not have been reverted. A Ready instance is adopted in any
// case (design rule: existing objects win).
func (l *Ledger) mayAdopt(v View) bool {
	if !isInstanceOf(v.Instance, l.Group) || !EpochBefore(v.Generation.Epoch, l.Epoch) || l.Recovering ||
		l.wasReleased(v.Instance) || l.undoes(v.attempt(l.Group)) || l.Spec == nil ||
		l.Spec.InstanceSpec.Hash() != v.SpecHash {
		return false
	}
	return l.mayGrowBy(v) || v.Phase == Ready && v.End == EndFinal
}

// mayGrowBy reports whether the driver that sent the view of an unknown instance may continue.
func (l *Ledger) mayGrowBy(v View) bool {
	return v.Phase.Growing() && v.End == EndNone && l.Target() < l.Spec.Max &&
		EpochBefore(l.Reverted, v.Generation.Epoch)
}

func (l *Ledger) adoptFromView(v View, now time.Time) {
	i := NewInstance(v.Instance, &l.Spec.InstanceSpec, now)
	i.BookedAt = v.BookedAt
	e := l.add(i)
	e.Driver = DriverRef{Kind: ScaleOut, Generation: v.Generation}
	l.accept(e, v, now)
}

// driver returns the kind of the workflow that has sent the view.
func (v View) driver() DriverKind {
	if v.Phase.Shrinking() {
		return ScaleIn
	}
	return ScaleOut
}

func (v View) attempt(group string) Attempt {
	return Attempt{Group: group, Instance: v.Instance, Number: v.Attempt, Provider: v.Offer.from()}
}

// Chosen returns the view that Select sends with its choice, before the request to the provider.
func (v View) Chosen(o Offer) View {
	v.Phase, v.Attempt, v.Offer = Peering, v.Attempt+1, o.ForView()
	return v
}

// Joined returns the view that Join sends when the Node is Ready.
func (v View) Joined() View {
	v.Phase, v.Failure, v.End = Ready, nil, EndFinal
	return v
}

// Returned returns the view that Return sends when all objects are removed.
func (v View) Returned() View {
	v.Phase, v.Stuck, v.End = Released, "", EndFinal
	return v
}

// undo starts the undo of attempts that may have left objects behind. It starts the undo of an attempt only once.
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

// undoes reports whether the command that starts the attempt's undo is open.
func (l *Ledger) undoes(at Attempt) bool {
	return slices.ContainsFunc(l.Commands.Open, func(c Command) bool {
		return c.Kind == CommandUndo && c.Attempt.ObjectName() == at.ObjectName()
	})
}
