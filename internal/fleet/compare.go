package fleet

import (
	"slices"
	"time"
)

// Patience of the comparison between what is booked and what exists.
const (
	// missingTwice is how many looks in a row must miss the slice or the VirtualNode before it is lost.
	missingTwice = 2
	// lookAgain is when one that missed something is repeated.
	lookAgain = 5 * time.Second
	// nodeGrace is how long a Node may be missing alone: its virtual kubelet registers it again when somebody deleted it
	// (Liqo cmd/virtual-kubelet/root/root.go), and notices within 60 s, when it next writes the Node's status.
	nodeGrace = 3 * time.Minute
	// EmptyGrace is how long lists may show nothing at all before that is believed: it is rather an answer from the wrong
	// cluster, or one whose data is being restored, than all of them gone at once.
	EmptyGrace = 5 * time.Minute
	// maxOrphans is how many orphans one round undoes.
	maxOrphans = 5
)

// compared judges one round's rows by the present state. Instances that changed since the round read the group are left
// alone, and an orphan counts when two rounds in a row show it.
func (l *Ledger) compared(d Differences, now time.Time) {
	if !l.takes(d) {
		return
	}
	var before []string // what the round just before this one found without a booking
	if d.Round.Follows(l.Round.Last) {
		before = l.Round.Unbooked
	}
	if d.Round.Term != l.Round.Last.Term {
		l.newTerm()
	}
	l.Round.Last, l.Round.Unbooked = d.Round, nil
	l.keep(d)
	turn := int(d.Round.Number*maxOrphans) % max(len(d.Found), 1) // those that cannot be undone yet hold no other up
	l.unbooked(slices.Concat(d.Found[turn:], d.Found[:turn]), before, now)
	if !l.believes(d, now) {
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
			l.judge(e, f, now.Add(-time.Duration(d.Before)*time.Second), now)
			l.readiness(e, f, now)
		} else {
			e.found()
		}
	}
	l.sentenced(d, now)
}

// takes reports whether the round is later than the last one, and has read the group in its present epoch.
func (l *Ledger) takes(d Differences) bool {
	return d.Round.After(l.Round.Last) && (d.Epoch == "" || d.Epoch == l.Epoch)
}

// keep notes the instances whose Nodes the observer keeps for volumes.
func (l *Ledger) keep(d Differences) {
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

// newTerm forgets what another observer has seen, and publishes the term.
func (l *Ledger) newTerm() {
	for _, e := range l.Entries {
		e.Missing, e.NodeMissing = 0, nil // e.Gone stays: the other observer may be the last that had the instance
	}
	l.changed()
}

// unbooked notes what has no booking, and acts on what had none before either. When a name shows that history went back
// the ledger begins anew, and nothing is left that the round could judge.
func (l *Ledger) unbooked(found []Found, before []string, now time.Time) {
	undone := 0
	for _, f := range found {
		if l.wentBack(f) {
			booked, _, _ := ParseInstanceName(l.Group, f.Attempt.Instance)
			l.beginAnew(booked, now)
			return
		}
		if l.books(f) {
			continue
		}
		name := f.Attempt.ObjectName()
		l.Round.Unbooked = append(l.Round.Unbooked, name)
		if slices.Contains(before, name) && l.orphan(f, undone < maxOrphans, now) {
			undone++
		}
	}
}

// wentBack reports whether the object's name is one that this ledger has not given yet.
func (l *Ledger) wentBack(f Found) bool {
	booked, seq, ok := ParseInstanceName(l.Group, f.Attempt.Instance)
	newest := l.newest()
	ofEpoch := booked == newest || EpochBefore(l.Epoch, booked)
	return ok && (ofEpoch && seq > l.NextSeq || EpochBefore(newest, booked))
}

// books reports whether the attempt is an instance's own. An attempt above a growing instance's is one whose view is on
// its way; above any other's it is of a scale-out that the group has forgotten.
func (l *Ledger) books(f Found) bool {
	e := l.Find(f.Attempt.Instance)
	switch {
	case e == nil && f.Virtual && f.Booking == nil:
		return true // nobody knows what it is, and it may carry pods; it is left to people
	case e == nil || e.Phase == Released || e.Phase == Failed:
		return false
	case e.Driver.Kind == ScaleOut:
		return f.Attempt.Number >= e.Attempt
	default:
		return f.Attempt.Number == e.Attempt
	}
}

// orphan adopts what is whole and can be read, and has everything else undone if it may. It reports whether an undo was
// started. The driver of an instance that is not known may still be making it. Adoption has no bound: after a restored
// backup CA must not buy again what exists.
func (l *Ledger) orphan(f Found, mayUndo bool, now time.Time) (undone bool) {
	name := f.Attempt.Instance
	e := l.Find(name)
	switch {
	case f.adoptable() && e == nil && !l.wasReleased(name):
		l.adopt(f, now)
		return false
	case f.adoptable() && e != nil && e.forgot(f):
		l.remember(e, f, now)
		return false
	case !mayUndo:
		return false
	case e == nil:
		l.Commands.Add(Command{Kind: CommandOrder, Driver: ScaleOut, Instance: name, Order: &Order{Stop: true}})
	}
	l.undoAttempt(f.Attempt)
	return true
}

// forgot reports whether an instance without a node has one that nobody asked to undo: its history went back, and its
// scale-out went on from there.
func (e *Entry) forgot(f Found) bool {
	return (e.Phase == Failed || e.Driver.Kind == ScaleOut) && !e.Leaving && f.Attempt.Number > e.Undone
}

// remember makes what exists the instance's state. What its scale-out has made since is an orphan.
func (l *Ledger) remember(e *Entry, f Found, now time.Time) {
	from := e.Phase
	l.drop(CommandOrder, e)
	if e.Driver.Kind != "" {
		l.order(e, Order{Stop: true})
	}
	e.Driver = e.Driver.ended()
	e.becomes(f, now)
	l.changed(e)
	l.moved(e, from, "found", nil)
}

// believes reports whether a round may be judged by: not while its lists show nothing at all, see EmptyGrace.
func (l *Ledger) believes(d Differences, now time.Time) bool {
	switch {
	case !d.Empty:
		l.Round.EmptySince = nil
	case l.Round.EmptySince == nil:
		l.Round.EmptySince = &now
	}
	return l.Round.EmptySince == nil || now.Sub(*l.Round.EmptySince) >= EmptyGrace
}

// observed judges the instances of one look by what exists; a single look that shows nothing of any is not believed.
func (l *Ledger) observed(names []string, found []Found, empty bool, now time.Time) {
	if empty {
		return // the rounds of the observer tell whether to believe that, see EmptyGrace
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
		l.judge(e, byName[ObjectName(e.Name, e.Attempt)], now, now)
		if e.Phase == Ready && e.Missing > 0 {
			l.observe(e.Name, now.Add(lookAgain))
		}
	}
}

// found forgets that something of the instance was missing.
func (e *Entry) found() { e.Missing, e.NodeMissing, e.Gone = 0, nil, nil }

// judge compares a Ready instance with its objects; a zero Found has no object. The instance existed at the time had.
func (l *Ledger) judge(e *Entry, f Found, had, now time.Time) {
	stands := f.Slice && f.Virtual && !f.Terminating
	if stands && f.Marked {
		e.Missing = 0
	} else {
		e.Missing++
	}
	e.Gone = missingSince(f.Slice, e.Gone, had)
	e.NodeMissing = missingSince(f.Node, e.NodeMissing, now)
	switch {
	case e.Missing >= missingTwice && stands: // only a drain takes the mark: one that a restored history has forgotten
		l.apply(e, Event{Kind: Deleted}, now)
	case e.Missing >= missingTwice:
		l.refund(e)
		l.lose(e, "its ResourceSlice or VirtualNode is gone", now)
	case e.NodeMissing != nil && now.Sub(*e.NodeMissing) >= nodeGrace:
		l.lose(e, "its Node is gone and did not come back", now)
	}
}

// missingSince returns since when something is missing: nil while it is there, else the time that is known, or at.
func missingSince(there bool, known *time.Time, at time.Time) *time.Time {
	switch {
	case there:
		return nil
	case known == nil:
		return &at
	}
	return known
}

// readiness applies what a round saw of a Ready instance's Node. A single look does not: a fact that came
// meanwhile is newer.
func (l *Ledger) readiness(e *Entry, f Found, now time.Time) {
	switch {
	case e.Phase != Ready || !f.Node:
	case f.Stamped && f.Ready && e.NotReady:
		l.apply(e, Event{Kind: Registered}, now)
	case !f.Ready && !e.NotReady:
		l.apply(e, Event{Kind: NotReady}, now)
	}
}

// lose gives a Ready instance up: it no longer counts and is never resurrected.
func (l *Ledger) lose(e *Entry, why string, now time.Time) {
	l.apply(e, Event{Kind: Lost, Failure: NewFailure(CodeLost, e.Provider(), "", why)}, now)
}

// sentenced gives up what a round has sentenced, if that still holds.
func (l *Ledger) sentenced(d Differences, now time.Time) {
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

// learn takes a fact from watching. That something is lost is a hint only: the group looks for itself.
func (l *Ledger) learn(f Fact, now time.Time) {
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

// observe has what exists of an instance looked at, once.
func (l *Ledger) observe(name string, notBefore time.Time) {
	if !slices.Contains(l.Recheck, name) {
		l.Recheck = append(l.Recheck, name)
	}
	l.RecheckAt = Earlier(l.RecheckAt, notBefore)
}

// lookAtDoubtful has the instances in doubt looked at, all together and one look at a time: each lists what exists.
func (l *Ledger) lookAtDoubtful(now time.Time) {
	if !l.RecheckAt.After(now) {
		l.RecheckAt = time.Time{}
	}
	if len(l.Recheck) > 0 && !l.Commands.Has(CommandInspect) {
		l.Commands.Add(Command{Kind: CommandInspect, Instances: l.Recheck, NotBefore: l.RecheckAt})
		l.Recheck, l.RecheckAt = nil, time.Time{}
	}
}
