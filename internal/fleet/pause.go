package fleet

import "time"

// This file pauses a group. A paused group books and starts no instances. Instances without a granted hold fail
// immediately, so that Cluster Autoscaler chooses another group. Instances with a granted hold continue.

func (l *Ledger) checkPause(Request, time.Time) error { return nil }

// pause applies the operator's order to pause or resume. It is idempotent.
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

// inherit restores the pause that the observer last saved, unless an operator has paused or resumed the group since the
// ledger started. A nil paused means that the observer has saved nothing about the group.
func (l *Ledger) inherit(paused *bool) {
	if l.Inherits && paused != nil && l.Paused != *paused {
		l.Paused = *paused
		l.Revision++
	}
	l.Inherits = false
}

// isHalted reports whether the pause applies to the instance: no scale-out was started for it, or it waits for a
// provider's grant.
func (l *Ledger) isHalted(e *Entry) bool {
	return l.Paused && !e.Leaving && (e.Phase == Pending || e.Phase == Peering)
}

// PausedFailure returns the failure for an instance that fails because its group is paused.
func PausedFailure(group string) *Failure {
	return NewFailure(CodePaused, "", "", "node group "+group+" was paused before a provider had granted the instance "+
		"a hold")
}
