package fleet

import (
	"slices"
	"time"
)

// Because of these bounds, the comparison of bookings and objects does not act too early.
const (
	// An instance is lost when missingTwice consecutive listings do not contain its slice or do not contain its
	// VirtualNode.
	missingTwice = 2
	// If an inspection finds that objects are missing, the group inspects them again after recheckAfter.
	recheckAfter = 5 * time.Second
	// An instance is lost when only its Node is missing for nodeGrace. The virtual kubelet registers a deleted Node
	// again (Liqo cmd/virtual-kubelet/root/root.go). It notices the deletion within 60 s, when it next writes the
	// Node's status.
	nodeGrace = 3 * time.Minute
	// The comparison ignores completely empty lists until they have been empty for EmptyGrace. Such lists rarely mean
	// that all objects are lost. More often they come from the wrong cluster, or from a cluster whose data is being
	// restored.
	EmptyGrace = 5 * time.Minute
	// maxOrphans bounds the number of orphans that one round undoes.
	maxOrphans = 5
)

// applyRound compares the findings of one round of the observer with the present state of the ledger. It skips
// instances that changed after the round read the group. It acts on an orphan only when two consecutive rounds report
// the orphan.
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

// recordKept records which instances keep their Node because volumes are on its provider.
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

// newTerm discards the findings of the previous observer, and publishes the term of the new observer.
func (l *Ledger) newTerm() {
	for _, e := range l.Entries {
		e.Missing, e.NodeMissing = 0, nil // e.Gone stays: perhaps only the previous observer saw the slice
	}
	l.changed()
}

// unbooked records the objects without a booking. It acts on an object if the previous round also found it without a
// booking. When a name shows that the history was reverted, the ledger starts again, and the rest of the round has no
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

// showsRevert reports whether the object's name is newer than all names that this ledger has assigned. A name with the
// time of the epoch itself is older: the group's previous workflow assigned it, see booking.
func (l *Ledger) showsRevert(f Found) bool {
	booked, seq, ok := ParseInstanceName(l.Group, f.Attempt.Instance)
	return ok && (EpochBefore(l.Epoch, booked) && seq > l.NextSeq || EpochBefore(l.newest(), booked))
}

// isBooked reports whether the attempt belongs to its instance. While a scale-out of the instance runs, an attempt
// with a higher number than the entry's also belongs to the instance: the view that reports this attempt has not
// arrived yet. Otherwise, such an attempt was made by a scale-out that the group has forgotten.
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

// orphan adopts an instance whose objects are complete and readable, and undoes any other orphan if mayUndo is true.
// It reports whether it started an undo. If the ledger does not contain the instance, orphan also stops the instance's
// driver, which may still be creating objects. The number of adoptions is not bounded: after a backup is restored, CA
// must not buy capacity that already exists.
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

// isForgotten reports whether an instance without a node has objects whose undo was never requested. If so, the
// group's history was reverted, and the instance's scale-out continued from an earlier state.
func (e *Entry) isForgotten(f Found) bool {
	return (e.Phase == Failed || e.Driver.Kind == ScaleOut) && !e.Leaving && f.Attempt.Number > e.Undone
}

// restoreEntry sets the instance's state from the existing objects. It stops the instance's scale-out. Other objects
// that this scale-out has made become orphans.
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

// trustsLists reports whether the round's lists can be trusted. Completely empty lists can be trusted only after they
// have been empty for EmptyGrace.
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

// compareObjects compares a Ready instance with its objects. If f is zero, no object exists. lastSeen is the last time
// at which the instance is known to have existed.
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

// missingSince returns the time since which an object is missing, or nil if the object exists. If the parameter known
// contains an earlier result, missingSince returns it; otherwise it returns the parameter at.
func missingSince(there bool, known *time.Time, at time.Time) *time.Time {
	switch {
	case there:
		return nil
	case known == nil:
		return &at
	}
	return known
}

// readiness updates the instance with the readiness of its Node that a round has found. An inspection does not update
// the readiness, because a watcher's fact that arrived during the inspection is newer.
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

// applyLosses marks the instances in d.Lost as lost. It skips an instance that changed after the round read the group.
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
