package fleet

import (
	"slices"
	"time"
)

// These bounds prevent the comparison of bookings and objects from acting too early.
const (
	// missingTwice is the number of consecutive listings without the slice or the VirtualNode that make an instance lost.
	missingTwice = 2
	// recheckAfter is the pause before an inspection with missing objects is repeated.
	recheckAfter = 5 * time.Second
	// nodeGrace is the time for which the Node alone may be missing. Its virtual kubelet registers a deleted Node again
	// (Liqo cmd/virtual-kubelet/root/root.go). It notices the loss within 60 s, when it next writes the Node's status.
	nodeGrace = 3 * time.Minute
	// EmptyGrace is the time for which completely empty lists are ignored. They more probably come from the wrong cluster,
	// or from a cluster whose data is being restored, than from the loss of all objects.
	EmptyGrace = 5 * time.Minute
	// maxOrphans bounds the orphans that one round undoes.
	maxOrphans = 5
)

// applyRound evaluates one round's rows against the present state. It skips instances that changed after the round read
// the group. An orphan counts when two consecutive rounds report it.
func (l *Ledger) applyRound(d Differences, now time.Time) {
	if !l.acceptsRound(d) {
		return
	}
	var before []string // the names that the previous round found without a booking
	if d.Round.Follows(l.Round.Last) {
		before = l.Round.Unbooked
	}
	if d.Round.Term != l.Round.Last.Term {
		l.newTerm()
	}
	l.Round.Last, l.Round.Unbooked = d.Round, nil
	l.recordKept(d)
	first := int(d.Round.Number*maxOrphans) % max(len(d.Found), 1) // rotates, so stuck orphans do not block other orphans
	l.unbooked(slices.Concat(d.Found[first:], d.Found[:first]), before, now)
	if !l.trustsLists(d, now) {
		return
	}
	found := map[string]Found{}
	for _, f := range d.Found {
		found[f.Attempt.ObjectName()] = f
	}
	for _, e := range l.Entries {
		if e.Phase != Ready || e.Changed > d.Revision {
			continue
		}
		f, differs := found[ObjectName(e.Name, e.Attempt)]
		if differs || slices.Contains(d.Missing, e.Name) {
			l.compareObjects(e, f, now.Add(-time.Duration(d.Before)*time.Second), now)
			l.readiness(e, f, now)
		} else {
			e.found()
		}
	}
	l.applyLosses(d, now)
}

// acceptsRound reports whether the round is later than the last one and has read the group in its present epoch.
func (l *Ledger) acceptsRound(d Differences) bool {
	return d.Round.After(l.Round.Last) && (d.Epoch == "" || d.Epoch == l.Epoch)
}

// recordKept records the instances whose Nodes the observer keeps for their volumes.
func (l *Ledger) recordKept(d Differences) {
	if d.Keeps == nil {
		return
	}
	for _, e := range l.Entries {
		if kept := slices.Contains(*d.Keeps, e.Name); kept != e.Kept {
			e.Kept = kept
			l.changed()
		}
	}
}

// newTerm discards the findings of the previous observer, and publishes the term.
func (l *Ledger) newTerm() {
	for _, e := range l.Entries {
		e.Missing, e.NodeMissing = 0, nil // e.Gone stays: perhaps only the previous observer found the instance
	}
	l.changed()
}

// unbooked records the objects without a booking, and acts on objects that the previous round found without a booking
// too. When a name shows that the history was reverted, the ledger starts again, and the rest of the round has no
// effect.
func (l *Ledger) unbooked(found []Found, before []string, now time.Time) {
	undone := 0
	for _, f := range found {
		if l.showsRevert(f) {
			booked, _, _ := ParseInstanceName(l.Group, f.Attempt.Instance)
			l.restart(booked, now)
			return
		}
		if l.isBooked(f) {
			continue
		}
		name := f.Attempt.ObjectName()
		l.Round.Unbooked = append(l.Round.Unbooked, name)
		if slices.Contains(before, name) && l.orphan(f, undone < maxOrphans, now) {
			undone++
		}
	}
}

// showsRevert reports whether the object's name is newer than all names that this ledger has assigned.
func (l *Ledger) showsRevert(f Found) bool {
	booked, seq, ok := ParseInstanceName(l.Group, f.Attempt.Instance)
	newest := l.newest()
	ofEpoch := booked == newest || EpochBefore(l.Epoch, booked)
	return ok && (ofEpoch && seq > l.NextSeq || EpochBefore(newest, booked))
}

// isBooked reports whether the attempt belongs to its instance. A higher attempt belongs to a growing instance, because
// the view that reports it is on its way. For any other instance a higher attempt was made by a scale-out that the
// group has forgotten.
func (l *Ledger) isBooked(f Found) bool {
	e := l.Find(f.Attempt.Instance)
	switch {
	case e == nil && f.Virtual && f.Booking == nil:
		return true // its origin is unknown and it may run pods: a person must decide
	case e == nil || e.Phase == Released || e.Phase == Failed:
		return false
	case e.Driver.Kind == ScaleOut:
		return f.Attempt.Number >= e.Attempt
	default:
		return f.Attempt.Number == e.Attempt
	}
}

// orphan adopts an instance whose objects are complete and readable, and undoes any other orphan if mayUndo. It reports
// whether it started an undo. The driver of an unknown instance receives a stop, because it may still be creating
// objects. Adoptions are not bounded: after a restored backup CA must not buy existing capacity again.
func (l *Ledger) orphan(f Found, mayUndo bool, now time.Time) (undone bool) {
	name := f.Attempt.Instance
	e := l.Find(name)
	switch {
	case f.adoptable() && e == nil && !l.wasReleased(name):
		l.adopt(f, now)
		return false
	case f.adoptable() && e != nil && e.isForgotten(f):
		l.restoreEntry(e, f, now)
		return false
	case !mayUndo:
		return false
	case e == nil:
		l.Commands.Add(Command{Kind: CommandOrder, Driver: ScaleOut, Instance: name, Order: &Order{Stop: true}})
	}
	l.undoAttempt(f.Attempt)
	return true
}

// isForgotten reports whether an instance without a node has objects whose undo was never requested. Then its history
// was reverted, and its scale-out continued from an earlier state.
func (e *Entry) isForgotten(f Found) bool {
	return (e.Phase == Failed || e.Driver.Kind == ScaleOut) && !e.Leaving && f.Attempt.Number > e.Undone
}

// restoreEntry sets the instance's state from the existing objects. Objects that its scale-out has made since become
// orphans.
func (l *Ledger) restoreEntry(e *Entry, f Found, now time.Time) {
	from := e.Phase
	l.drop(CommandOrder, e)
	if e.Driver.Kind != "" {
		l.order(e, Order{Stop: true})
	}
	e.Driver = e.Driver.ended()
	e.setReady(f, now)
	l.changed(e)
	l.moved(e, from, "found", nil)
}

// trustsLists reports whether the round's lists can be trusted. Completely empty lists are not trusted for EmptyGrace.
func (l *Ledger) trustsLists(d Differences, now time.Time) bool {
	switch {
	case !d.Empty:
		l.Round.EmptySince = nil
	case l.Round.EmptySince == nil:
		l.Round.EmptySince = &now
	}
	return l.Round.EmptySince == nil || now.Sub(*l.Round.EmptySince) >= EmptyGrace
}

// applyInspection evaluates the instances of one inspection. It ignores an inspection that finds no objects of any
// instance.
func (l *Ledger) applyInspection(names []string, found []Found, empty bool, now time.Time) {
	if empty {
		return // the observer's rounds decide about empty lists, see EmptyGrace
	}
	byName := map[string]Found{}
	for _, f := range found {
		byName[f.Attempt.ObjectName()] = f
	}
	for _, name := range names {
		e := l.Find(name)
		if e == nil || e.Phase != Ready {
			continue
		}
		l.compareObjects(e, byName[ObjectName(e.Name, e.Attempt)], now, now)
		if e.Phase == Ready && e.Missing > 0 {
			l.observe(e.Name, now.Add(recheckAfter))
		}
	}
}

// found clears the record of missing objects.
func (e *Entry) found() { e.Missing, e.NodeMissing, e.Gone = 0, nil, nil }

// compareObjects compares a Ready instance with its objects; a zero Found has no object. lastSeen is the last time at
// which the instance is known to have existed.
func (l *Ledger) compareObjects(e *Entry, f Found, lastSeen, now time.Time) {
	exists := f.Slice && f.Virtual && !f.Terminating
	if exists && f.Marked {
		e.Missing = 0
	} else {
		e.Missing++
	}
	e.Gone = missingSince(f.Slice, e.Gone, lastSeen)
	e.NodeMissing = missingSince(f.Node, e.NodeMissing, now)
	switch {
	case e.Missing >= missingTwice && exists: // only a drain removes the mark: the history with that drain was reverted
		l.apply(e, Event{Kind: Deleted}, now)
	case e.Missing >= missingTwice:
		l.refund(e)
		l.lose(e, "its ResourceSlice or VirtualNode is gone", now)
	case e.NodeMissing != nil && now.Sub(*e.NodeMissing) >= nodeGrace:
		l.lose(e, "its Node is gone and did not come back", now)
	}
}

// missingSince returns the time since which an object is missing: nil while it exists, else known, or at if known is
// nil.
func missingSince(there bool, known *time.Time, at time.Time) *time.Time {
	switch {
	case there:
		return nil
	case known == nil:
		return &at
	}
	return known
}

// readiness applies the Node's readiness that a round found. An inspection does not apply it, because a watcher's fact
// that arrived during the inspection is newer.
func (l *Ledger) readiness(e *Entry, f Found, now time.Time) {
	switch {
	case e.Phase != Ready || !f.Node:
	case f.Stamped && f.Ready && e.NotReady:
		l.apply(e, Event{Kind: Registered}, now)
	case !f.Ready && !e.NotReady:
		l.apply(e, Event{Kind: NotReady}, now)
	}
}

// lose marks a Ready instance as lost: it no longer counts and never becomes Ready again.
func (l *Ledger) lose(e *Entry, why string, now time.Time) {
	l.apply(e, Event{Kind: Lost, Failure: NewFailure(CodeLost, e.Provider(), "", why)}, now)
}

// applyLosses applies the losses that a round has decided, as far as they are still valid.
func (l *Ledger) applyLosses(d Differences, now time.Time) {
	for _, v := range d.Lost {
		e := l.Find(v.Instance)
		if e == nil || e.Phase != Ready || e.Attempt != v.Attempt || e.Changed > d.Revision {
			continue
		}
		if v.Silent && (l.Spec == nil || !l.Spec.Budgets.WithDefaults().Unready.Over(e.NotReadySince, now)) {
			continue
		}
		l.lose(e, v.Reason, now)
	}
}

// applyFact applies a fact from a watcher. A loss is only a hint: the group inspects the objects before it acts.
func (l *Ledger) applyFact(f Fact, now time.Time) {
	e := l.Find(f.Instance)
	if e == nil || e.Attempt != f.Attempt || e.Driver.Kind != "" {
		return
	}
	switch {
	case f.Kind == Lost && e.Phase == Ready:
		l.observe(e.Name, now)
	case f.Kind == NotReady && !e.NotReady:
		l.apply(e, Event{Kind: NotReady}, now)
		l.observe(e.Name, now)
	case f.Kind == Registered && (!e.Registered || e.NotReady):
		l.apply(e, Event{Kind: Registered}, now)
	}
}

// observe schedules one inspection of an instance's objects, not before the given time.
func (l *Ledger) observe(name string, notBefore time.Time) {
	if !slices.Contains(l.Recheck, name) {
		l.Recheck = append(l.Recheck, name)
	}
	l.RecheckAt = Earlier(l.RecheckAt, notBefore)
}

// startRecheck starts the inspection of all scheduled instances together. Only one inspection runs at a time, because
// each lists all objects.
func (l *Ledger) startRecheck(now time.Time) {
	if !l.RecheckAt.After(now) {
		l.RecheckAt = time.Time{}
	}
	if len(l.Recheck) > 0 && !l.Commands.Has(CommandInspect) {
		l.Commands.Add(Command{Kind: CommandInspect, Instances: l.Recheck, NotBefore: l.RecheckAt})
		l.Recheck, l.RecheckAt = nil, time.Time{}
	}
}
