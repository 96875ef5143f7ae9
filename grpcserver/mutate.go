package grpcserver

import (
	"context"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// Times of a mutation.
const (
	// withoutDeadline bounds mutations of callers that set none. CA always sets one (grpc_timeout, 5 s).
	withoutDeadline = 30 * time.Second
	// expiryMargin is how long before the caller's deadline an operation expires: later it is refused, not run.
	expiryMargin = 500 * time.Millisecond
	// taskTimeout is the workflow task timeout of a group: an operation that began to run ends within it, or is run anew
	// and then checked for expiry again.
	taskTimeout = 2 * time.Second
)

// mutation is one change of a group.
type mutation struct {
	verb string
	// refuse, if any, says no early, by a picture that is not dirty; the group itself has the last word.
	refuse func(*group, *picture) error
	book   func(ctx context.Context, group string) (fleet.Snapshot, error)
	// seen, if any, tells whether the group has changed as asked. It decides when the answer was lost.
	seen func(before, after *picture) bool
}

// mutate runs m in the group's turn and puts its snapshot into the view before it returns.
func (s *Server) mutate(ctx context.Context, id string, m mutation) error {
	g, err := s.group(id)
	if err != nil {
		return err
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	if err := g.takeTurn(ctx); err != nil {
		return wall(m.verb, id, err)
	}
	defer g.giveTurn()

	before, clean := g.picture.Load(), g.dirtyUntil().IsZero()
	if m.refuse != nil && before != nil && clean {
		if err := m.refuse(g, before); err != nil {
			return err
		}
	}
	began := time.Now()
	snapshot, err := m.book(ctx, id)
	if err == nil {
		if err := g.put(snapshot, began); err != nil { // booked all the same; Refresh reports it
			s.log.Error("snapshot of a booked operation cannot be used", "group", id, "error", err)
			g.lost(time.Now())
		}
		return nil
	}
	if nothingChanged(err) {
		return wall(m.verb, id, err)
	}
	s.log.Warn("outcome of an operation is unknown", "group", id, "operation", m.verb, "error", err)
	g.lost(settlesAt(ctx))
	if clean && before != nil && s.seenAfterAll(ctx, g, m, before) {
		return nil
	}
	return wall(m.verb, id, err)
}

// bounded gives a mutation an end when its caller set none.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, withoutDeadline)
}

// settlesAt is when an operation lost now has either run or expired.
func settlesAt(ctx context.Context) time.Time {
	last := time.Now()
	if deadline, ok := ctx.Deadline(); ok && deadline.Add(-expiryMargin).After(last) {
		last = deadline.Add(-expiryMargin)
	}
	return last.Add(taskTimeout)
}

// seenAfterAll looks at the group once more within the caller's deadline, no sooner than an operation that had begun can
// have ended. True when the operation has run; otherwise nothing is known yet and the group stays dirty.
func (s *Server) seenAfterAll(ctx context.Context, g *group, m mutation, before *picture) bool {
	if m.seen == nil {
		return false
	}
	if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) <= taskTimeout {
		return false
	}
	timer := time.NewTimer(taskTimeout)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return false
	}
	began := time.Now()
	snapshot, err := s.groups.Snapshot(ctx, g.id)
	if err != nil || g.put(snapshot, began) != nil || !m.seen(before, newPicture(snapshot)) {
		return false
	}
	g.found()
	return true
}
