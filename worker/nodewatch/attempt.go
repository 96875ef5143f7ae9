package nodewatch

import (
	"reflect"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// attempt holds the known state of one attempt.
type attempt struct {
	found fleet.Found
	// marked reports whether the attempt's virtual node carries the mark (the annotation of a finished attempt), or
	// carried it in the last report. Our own steps remove the mark before the objects. So if an object of a marked attempt
	// disappears, another actor has removed it. The exception is a removal by our steps that falls between two reports.
	marked bool
	// seen is the time of the last change of found.
	seen time.Time
	// news reports whether found has changed since the attempt last entered the queue of facts.
	news bool
	// sent is the last fact that was sent to the group. It is empty before the first fact, and when the last sent
	// fact is no longer true and no other fact replaces it.
	sent fleet.EventKind
	// sentOther reports whether the last sent fact was not Registered.
	sentOther bool
	// stamped reports whether the Node has ever carried the instance id.
	stamped bool
	// requested is the time of the last request to register the missing Node again; zero while the Node exists.
	requested time.Time
	// reported lists the Node's differences that were logged and recorded before.
	reported []string
}

// update saves the found objects, and reports whether they differ from the objects of the last call.
func (a *attempt) update(found fleet.Found, now time.Time) bool {
	if !a.seen.IsZero() && reflect.DeepEqual(a.found, found) {
		return false
	}
	first := a.seen.IsZero()
	switch {
	case found.Virtual:
		a.marked = found.Marked
	case first: // the virtual node disappeared before this Run: it was marked if the Node is stamped and not terminating
		a.marked = found.Stamped && !found.Terminating
	}
	a.found, a.seen = found, now
	a.stamped = a.stamped || found.Stamped
	if found.Node {
		a.requested = time.Time{}
	}
	return true
}

// lacksStamp reports whether the Node lacks the instance id, so that the id must be written.
func (a *attempt) lacksStamp() bool {
	f := a.found
	return f.Marked && f.Node && !f.Stamped && !f.Terminating
}

// lacksNode reports whether the missing Node must be registered again.
func (a *attempt) lacksNode() bool {
	f := a.found
	return f.Marked && !f.Node && !f.Terminating
}

// fact returns the fact about the attempt that is true now; empty if the group needs no fact.
func (a *attempt) fact() fleet.EventKind {
	f := a.found
	switch {
	case a.marked && (!f.Slice || !f.Virtual || f.Terminating): // a terminating object counts as gone
		return fleet.Lost
	case !f.Node || !f.Stamped || f.Terminating:
		return ""
	case f.Ready:
		return fleet.Registered
	default:
		return fleet.NotReady
	}
}

// gone reports whether no object of the attempt exists.
func (a *attempt) gone() bool {
	f := a.found
	return !f.Slice && !f.Virtual && !f.Node
}
