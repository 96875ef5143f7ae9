package nodewatch

import (
	"reflect"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// attempt holds the known state of one attempt.
type attempt struct {
	found fleet.Found
	// marked reports whether the attempt's virtual node carries the mark, or carried it when it was last seen. Our own
	// steps remove the mark first, so an object that disappears while the mark is on was removed by another actor, unless
	// all of this happened between two reports.
	marked bool
	// seen is the time at which found last changed.
	seen time.Time
	// news reports whether found has changed since the attempt last entered the queue of facts.
	news bool
	// told is the last fact that was sent to the group; empty before the first fact, or when the last one no longer holds.
	told fleet.EventKind
	// otherwise reports whether the last fact was another one than Registered.
	otherwise bool
	// stamped reports whether the Node has ever carried the instance id.
	stamped bool
	// called is the time of the last request to register the missing Node again; zero while the Node exists.
	called time.Time
	// reported lists the differences of the Node that were already reported.
	reported []string
}

// update saves the found objects, and reports whether they differ from the last ones.
func (a *attempt) update(found fleet.Found, now time.Time) bool {
	if !a.seen.IsZero() && reflect.DeepEqual(a.found, found) {
		return false
	}
	first := a.seen.IsZero()
	switch {
	case found.Virtual:
		a.marked = found.Marked
	case first: // the virtual node went before we started: a stamped Node was marked, unless we are removing it
		a.marked = found.Stamped && !found.Terminating
	}
	a.found, a.seen = found, now
	a.stamped = a.stamped || found.Stamped
	if found.Node {
		a.called = time.Time{}
	}
	return true
}

// lacksStamp reports whether the Node must be stamped again.
func (a *attempt) lacksStamp() bool {
	f := a.found
	return f.Marked && f.Node && !f.Stamped && !f.Terminating
}

// lacksNode reports whether the missing Node must be registered again.
func (a *attempt) lacksNode() bool {
	f := a.found
	return f.Marked && !f.Node && !f.Terminating
}

// fact returns the fact about the attempt that holds now; empty when the group does not need any.
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

// gone reports whether no object of the attempt is left.
func (a *attempt) gone() bool {
	f := a.found
	return !f.Slice && !f.Virtual && !f.Node
}
