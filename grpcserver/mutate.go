package grpcserver

import (
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// These are the times of a mutation.
const (
	// mutationTimeout bounds a mutation whose caller waits longer. CA waits 5 s (grpc_timeout).
	mutationTimeout = 30 * time.Second
	// lookEvery is the interval of reading the group while the outcome of an operation is unknown.
	lookEvery = 500 * time.Millisecond
)

// These are the verbs of mutations in errors.
const (
	increase    = "increase"
	decrease    = "decrease"
	deleteNodes = "delete nodes of"
)

// mutation is one change of a group that CA requests.
type mutation struct {
	verb  string
	delta int // of increase and decrease, positive
	calls []*deletion
	// priceCap bounds the hourly price of each node of an increase, see fleet.Request.
	priceCap float64
}

// send books the mutation with the group, and returns the position from which the group shows it.
func (m mutation) send(ctx context.Context, groups Groups, g *group) (fleet.Position, error) {
	switch m.verb {
	case increase:
		return groups.Grow(ctx, g.id, m.delta, m.priceCap, g.seen())
	case decrease:
		return groups.Shrink(ctx, g.id, m.delta, g.seen())
	default:
		return release(ctx, groups, g, m.calls)
	}
}

// shows reports whether the pictures before and after prove that the mutation has run. For a decrease it returns false,
// because other causes have the same effect.
func (m mutation) shows(before, after *picture) bool {
	switch m.verb {
	case increase:
		added := 0
		for name := range after.counting {
			if !before.lists(name) {
				added++
			}
		}
		return added == m.delta
	case deleteNodes:
		return !slices.ContainsFunc(m.calls, func(d *deletion) bool { return !d.shows(after) })
	default:
		return false
	}
}

// mutate runs m in the group's turn. When it returns nil, m is booked and reads show the change. If the change cannot
// be read, Refresh fails until it can.
func (s *Server) mutate(ctx context.Context, id string, m mutation) error {
	ctx, cancel := context.WithTimeout(ctx, mutationTimeout)
	defer cancel()
	g, _, err := s.pictureOf(ctx, id)
	if err != nil {
		return err
	}
	if err := g.turn.Acquire(ctx, 1); err != nil {
		return toStatus(m.verb, id, err)
	}
	defer g.turn.Release(1)
	return s.inTurn(ctx, g, m)
}

// inTurn runs m as mutate does, for a caller that has the group's turn.
func (s *Server) inTurn(ctx context.Context, g *group, m mutation) error {
	id := g.id
	if p := g.unusable.Load(); p != nil {
		return status.Errorf(codes.Unavailable,
			"%s node group %s: the last Refresh failed for this group: %v", m.verb, id, p)
	}
	if m.verb == increase {
		done, err := s.mayGrow(ctx, g, m.delta)
		if err != nil {
			return err
		}
		defer done()
		shared, err := s.mayShare(ctx, g)
		if err != nil {
			return err
		}
		defer shared()
		if m.priceCap, err = s.maySpend(g, m.delta, time.Now()); err != nil {
			return err
		}
	}
	before, wasDirty := g.picture.Load(), g.isDirty()
	booked, err := m.send(ctx, s.groups, g)
	if err == nil {
		if _, err := s.readFrom(ctx, g, booked); err != nil { // booked nevertheless; Refresh fails until it is visible
			s.log.Error("the result of a booked operation cannot be read",
				"group", id, "operation", m.verb, "error", err)
			g.lost(time.Now())
		}
		return nil
	}
	if nothingChanged(err) {
		return toStatus(m.verb, id, err)
	}
	s.log.Warn("outcome of an operation is unknown", "group", id, "operation", m.verb, "error", err)
	g.lost(settlesAt(ctx))
	if !wasDirty && s.foundLater(ctx, g, m, before) {
		return nil
	}
	return toStatus(m.verb, id, err)
}

// read reads the group's snapshot into the view.
func (s *Server) read(ctx context.Context, g *group) (fleet.Snapshot, error) {
	return s.readFrom(ctx, g, fleet.Position{})
}

// readFrom reads the group after an operation that has brought it to the position. A snapshot at an older position does
// not show the operation: readFrom returns an error, and the view ignores the snapshot.
func (s *Server) readFrom(ctx context.Context, g *group, at fleet.Position) (fleet.Snapshot, error) {
	g.reached(at)
	began := time.Now()
	snapshot, err := s.groups.Snapshot(ctx, g.id)
	if err != nil {
		return fleet.Snapshot{}, err
	}
	if snapshot.Position().Before(at) {
		return fleet.Snapshot{}, fmt.Errorf("read group %s: it shows %s/%d, and the operation has brought it to %s/%d: %w",
			g.id, snapshot.Epoch, snapshot.Revision, at.Epoch, at.Revision, fleet.ErrUnavailable)
	}
	return snapshot, g.put(snapshot, began)
}

// foundLater reads the group until the caller's deadline is near. It returns true when the lost operation is shown to
// have run. Otherwise the outcome stays unknown: a task that was lost with its worker runs again only after CA's
// timeout.
func (s *Server) foundLater(ctx context.Context, g *group, m mutation, before *picture) bool {
	if m.verb == decrease {
		return false
	}
	ctx, cancel := early(ctx)
	defer cancel()
	for wait.For(ctx, lookEvery) {
		if _, err := s.read(ctx, g); err == nil && m.shows(before, g.picture.Load()) {
			g.found()
			return true
		}
	}
	return false
}

// settlesAt returns the time by which an operation lost now has either run or expired.
func settlesAt(ctx context.Context) time.Time {
	last := time.Now()
	if deadline, ok := ctx.Deadline(); ok && deadline.Add(-fleet.GiveUpBefore).After(last) {
		last = deadline.Add(-fleet.GiveUpBefore)
	}
	return last.Add(fleet.TaskTimeout)
}

// early returns a context that ends before ctx, so that an answer can still reach the caller.
func early(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, deadline.Add(-fleet.GiveUpBefore))
}
