package fleet

import "time"

// An operator pauses a group: it books and starts nothing more. What no provider has granted yet fails at once, so that
// Cluster Autoscaler looks elsewhere; what has a grant goes on.

func (l *Ledger) checkPause(Request, time.Time) error { return nil }

// pause puts the operator's word in force. Idempotent.
func (l *Ledger) pause(r Request, _ time.Time) {
	l.Inherits = false
	if l.Paused == r.Paused {
		return
	}
	l.Paused = r.Paused
	l.Revision++
	if r.Paused {
		return
	}
	l.Commands.Drop(func(c Command) bool { return c.Kind == CommandOrder && c.Order.Paused })
	for _, e := range l.Entries {
		e.Driver.Sent.Paused = false
	}
}

// inherit takes over whether the group was paused when the observer last read it, unless an operator has paused or
// resumed it in this life. nil: the observer has saved nothing of the group.
func (l *Ledger) inherit(paused *bool) {
	if l.Inherits && paused != nil && l.Paused != *paused {
		l.Paused = *paused
		l.Revision++
	}
	l.Inherits = false
}

// isHalted reports whether the pause concerns the instance, as far as its group knows: no provider has granted it.
func (l *Ledger) isHalted(e *Entry) bool {
	return l.Paused && !e.Leaving && (e.Phase == Pending || e.Phase == Peering)
}

// PausedFailure is why a pause fails an instance.
func PausedFailure(group string) *Failure {
	return NewFailure(CodePaused, "", "", "node group "+group+" was paused before a provider had granted this")
}
