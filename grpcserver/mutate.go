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

// These constants are the time limit and the interval of a mutation.
const (
	// mutationTimeout bounds a mutation, unless its caller has an earlier deadline. The deadline of CA is 5 s
	// (grpc_timeout).
	mutationTimeout = 30 * time.Second
	// readEvery is the interval at which the server reads the group while the outcome of an operation is unknown.
	readEvery = 500 * time.Millisecond
)

// These constants name the mutations in errors and logs.
const (
	increase    = "increase"
	decrease    = "decrease"
	deleteNodes = "delete nodes of"
)

// mutation is a change of one group that CA has requested.
type mutation struct {
	verb  string
	delta int // the number of instances to add or to cancel, positive
	calls []*deletion
	// priceCap bounds the hourly price of each new node, see fleet.Request; 0 means no bound.
	priceCap float64
}

// send books the mutation in the group's workflow. It returns a position: every snapshot of the group at this
// position or later shows the mutation.
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

// confirmedBy compares the group's pictures before and after the mutation, and reports whether the difference proves
// that the mutation has run. For a decrease it always returns false, because other events can cause the same
// difference.
func (m mutation) confirmedBy(before, after *picture) bool {
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
		return !slices.ContainsFunc(m.calls, func(d *deletion) bool { return !d.confirmedBy(after) })
	default:
		return false
	}
}

// mutate waits for the group's turn (a lock for its mutations) and then runs m. When mutate returns nil, m is booked,
// and reads show the change. There is one exception: if m is booked but the group cannot be read, mutate returns nil
// although reads do not show the change. Refresh then fails until the server has read the change.
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
	return s.mutateWithTurn(ctx, g, m)
}

// mutateWithTurn runs m as mutate does. The caller must hold the group's turn.
func (s *Server) mutateWithTurn(ctx context.Context, g *group, m mutation) error {
	id := g.id
	if p := g.unusable.Load(); p != nil {
		return status.Errorf(codes.Unavailable,
			"%s node group %s: the last Refresh failed for this group: %v", m.verb, id, p)
	}
	if m.verb == increase {
		done, err := s.admitGrowth(ctx, g, m.delta)
		if err != nil {
			return err
		}
		defer done()
		shared, err := s.lockAccount(ctx, g)
		if err != nil {
			return err
		}
		defer shared()
		if m.priceCap, err = s.checkSpending(g, m.delta, time.Now()); err != nil {
			return err
		}
	}
	before, wasDirty := g.picture.Load(), g.isDirty()
	booked, err := m.send(ctx, s.groups, g)
	if err == nil {
		if _, err := s.readFrom(ctx, g, booked); err != nil { // m is booked; Refresh fails until a read shows m
			s.log.Error("the result of a booked operation cannot be read",
				"group", id, "operation", m.verb, "error", err)
			g.markUnknown(time.Now())
		}
		return nil
	}
	if nothingChanged(err) {
		return toStatus(m.verb, id, err)
	}
	s.log.Warn("outcome of an operation is unknown", "group", id, "operation", m.verb, "error", err)
	g.markUnknown(settlesAt(ctx))
	if !wasDirty && s.awaitOutcome(ctx, g, m, before) {
		return nil
	}
	return toStatus(m.verb, id, err)
}

// read reads the group's snapshot and stores it in the view.
func (s *Server) read(ctx context.Context, g *group) (fleet.Snapshot, error) {
	return s.readFrom(ctx, g, fleet.Position{})
}

// readFrom reads the group's snapshot after an operation, and stores the snapshot in the view. The parameter `at` is
// the position that the operation returned. A snapshot at an older position does not show the operation: readFrom
// does not store it and returns an error.
func (s *Server) readFrom(ctx context.Context, g *group, at fleet.Position) (fleet.Snapshot, error) {
	g.recordPosition(at)
	began := time.Now()
	snapshot, err := s.groups.Snapshot(ctx, g.id)
	if err != nil {
		return fleet.Snapshot{}, err
	}
	if snapshot.Position().Before(at) {
		return fleet.Snapshot{}, fmt.Errorf("read group %s: its snapshot at %s/%d is older than the operation at %s/%d: %w",
			g.id, snapshot.Epoch, snapshot.Revision, at.Epoch, at.Revision, fleet.ErrUnavailable)
	}
	return snapshot, g.storeSnapshot(snapshot, began)
}

// awaitOutcome reads the group repeatedly until shortly before the caller's deadline. It returns true when a read
// proves that the operation whose answer was lost has run. Otherwise the outcome stays unknown. The operation may
// still run later: if a worker has died, Temporal repeats the worker's task, but only after CA's deadline.
func (s *Server) awaitOutcome(ctx context.Context, g *group, m mutation, before *picture) bool {
	if m.verb == decrease {
		return false
	}
	ctx, cancel := beforeDeadline(ctx)
	defer cancel()
	for wait.For(ctx, readEvery) {
		if _, err := s.read(ctx, g); err == nil && m.confirmedBy(before, g.picture.Load()) {
			g.markKnown()
			return true
		}
	}
	return false
}

// settlesAt returns the earliest time at which it is certain that an operation whose answer was just lost has run or
// has expired.
func settlesAt(ctx context.Context) time.Time {
	last := time.Now()
	if deadline, ok := ctx.Deadline(); ok && deadline.Add(-fleet.GiveUpBefore).After(last) {
		last = deadline.Add(-fleet.GiveUpBefore)
	}
	return last.Add(fleet.TaskTimeout)
}

// beforeDeadline returns a context that ends shortly before the deadline of ctx, so that the answer can still reach the
// caller.
func beforeDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, deadline.Add(-fleet.GiveUpBefore))
}
