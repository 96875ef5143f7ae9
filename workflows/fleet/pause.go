package fleet

import "time"

// An operator pauses a group: it books and starts nothing more. What no provider has granted yet fails at once, so that
// Cluster Autoscaler looks elsewhere; what has a grant goes on.

// pause puts the operator's word in force. Idempotent.
func (l *Ledger) pause(on bool) {
	if l.Paused == on {
		return
	}
	l.Paused = on
	l.Revision++
	if on {
		return
	}
	l.Commands.Drop(func(c Command) bool { return c.Kind == CommandOrder && c.Order.Paused })
	for _, e := range l.Entries {
		e.Driver.Told.Paused = false
	}
}

// isHalted reports whether the pause concerns the instance, as far as its group knows: no provider has granted it.
func (l *Ledger) isHalted(e *Entry) bool {
	return l.Paused && !e.Leaving && (e.Phase == Pending || e.Phase == Peering)
}

// failPaused fails an instance that no driver runs for.
func (l *Ledger) failPaused(e *Entry, now time.Time) {
	l.apply(e, Event{Kind: Paused, Failure: PausedFailure(l.Group)}, now)
}

// PausedFailure is why a pause fails an instance.
func PausedFailure(group string) *Failure {
	return NewFailure(CodePaused, "", "", "node group "+group+" was paused before a provider had granted this")
}
