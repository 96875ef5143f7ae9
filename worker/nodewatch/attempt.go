package nodewatch

import (
	"reflect"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// attempt is what is known of one attempt.
type attempt struct {
	found fleet.Found
	// marked: its virtual node carries the mark, or carried it when it was last seen. Our own steps take the mark off
	// first, so what goes while it is on was removed by somebody else; unless all of it happened between two looks.
	marked bool
	// seen is when found last changed.
	seen time.Time
	// news: found has changed since telling was last handed the attempt.
	news bool
	// told is the last fact its group was told; empty when there was none or nothing of it holds any longer.
	told fleet.EventKind
	// otherwise: the last one was something else than Registered.
	otherwise bool
	// stamped: it carried the instance id before.
	stamped bool
	// called is when its missing Node was last called back; zero while it is there.
	called time.Time
	// reported is what people were told of how its Node differs.
	reported []string
}

// note records what was found, and reports whether it is new.
func (a *attempt) note(found fleet.Found, now time.Time) bool {
	if !a.seen.IsZero() && reflect.DeepEqual(a.found, found) {
		return false
	}
	first := a.seen.IsZero()
	switch {
	case found.Virtual:
		a.marked = found.Marked
	case first: // its virtual node went before we came: a stamped Node was marked, unless we are removing it
		a.marked = found.Stamped && !found.Terminating
	}
	a.found, a.seen = found, now
	a.stamped = a.stamped || found.Stamped
	if found.Node {
		a.called = time.Time{}
	}
	return true
}

// lacksStamp reports whether its Node is to be stamped again.
func (a *attempt) lacksStamp() bool {
	f := a.found
	return f.Marked && f.Node && !f.Stamped && !f.Terminating
}

// lacksNode reports whether its Node is to be called back.
func (a *attempt) lacksNode() bool {
	f := a.found
	return f.Marked && !f.Node && !f.Terminating
}

// fact is what holds of the attempt now; empty when that is nothing a group needs to know.
func (a *attempt) fact() fleet.EventKind {
	f := a.found
	switch {
	case a.marked && (!f.Slice || !f.Virtual || f.Terminating): // terminating is as good as gone
		return fleet.Lost
	case !f.Node || !f.Stamped || f.Terminating:
		return ""
	case f.Ready:
		return fleet.Registered
	default:
		return fleet.NotReady
	}
}

// gone reports whether nothing is left of it.
func (a *attempt) gone() bool {
	f := a.found
	return !f.Slice && !f.Virtual && !f.Node
}
