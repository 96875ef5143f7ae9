package grpcserver

import (
	"context"
	"runtime/debug"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// deletion is one call of NodeGroupDeleteNodes that waits for the turn of its group.
type deletion struct {
	ctx  context.Context // always has a deadline
	call fleet.Call
	// refused is the reason for which the group has refused this call, or nil when the group has booked the call.
	refused error
	done    chan error // buffered: the caller may have stopped waiting
}

// confirmedBy reports whether all of the call's instances have stopped counting. The picture after must have been
// read after the booking. This proves that the call has run or has nothing left to do, even if the answer of the
// booking was lost.
func (d *deletion) confirmedBy(after *picture) bool {
	return !slices.ContainsFunc(d.call.Names, after.counts)
}

// release books the calls in one update of the group's workflow. It sets the field refused in each call that the
// group has refused.
func release(ctx context.Context, groups Groups, g *group, calls []*deletion) (fleet.Position, error) {
	each := make([]fleet.Call, len(calls))
	for n, d := range calls {
		each[n] = d.call
	}
	at, refused, err := groups.ReleaseEach(ctx, g.id, each, g.seen())
	for n, why := range refused {
		calls[n].refused = &why
	}
	return at, err
}

// sameDeadline bounds the difference between the deadlines of calls that are booked together, because the update that
// books them ends at the earliest deadline.
const sameDeadline = time.Second

// release releases instances. All calls that wait for the turn of the same group are booked in one update of the
// group's workflow. The reason is that CA deletes ten idle nodes with ten concurrent calls and waits five seconds for
// each. Ten separate updates took longer than five seconds. Each call is still a separate operation with its own id,
// validation and outcome. A call whose caller has stopped waiting is not booked.
func (s *Server) release(ctx context.Context, id string, names []string) error {
	ctx, cancel := context.WithTimeout(ctx, mutationTimeout)
	defer cancel()
	g, _, err := s.pictureOf(ctx, id)
	if err != nil {
		return err
	}
	d := &deletion{ctx: ctx, call: s.groups.NewCall(ctx, names), done: make(chan error, 1)}
	g.mu.Lock()
	g.deletions = append(g.deletions, d)
	first := len(g.deletions) == 1
	g.mu.Unlock()
	if first {
		go s.releaseWaiting(context.WithoutCancel(ctx), g)
	}
	select {
	case err := <-d.done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-d.done:
		return err
	default:
		return toStatus(deleteNodes, id, ctx.Err())
	}
}

// releaseWaiting books the waiting deletions until none is left. parent must not end when the context of a call ends.
func (s *Server) releaseWaiting(parent context.Context, g *group) {
	for {
		err := g.turn.Acquire(parent, 1) // parent never ends
		batch, more := g.nextDeletions()
		if err == nil && len(batch) > 0 {
			err = s.releaseTogether(parent, g, batch)
		}
		g.turn.Release(1)
		for _, d := range batch {
			d.done <- d.outcome(err, g)
		}
		if !more {
			return
		}
	}
}

// releaseTogether books deletions in one update, which ends at the earliest deadline of the deletions. It converts a
// panic into an error of these deletions, as the function recovery does for a handler.
func (s *Server) releaseTogether(parent context.Context, g *group, batch []*deletion) (err error) {
	defer func() {
		if r := recover(); r != nil {
			s.log.Error("deletions panicked", "group", g.id, "panic", r, "stack", string(debug.Stack()))
			err = status.Errorf(codes.Internal, "%s node group %s: defect in the server, see its log", deleteNodes, g.id)
		}
	}()
	until, _ := batch[0].ctx.Deadline()
	for _, d := range batch {
		if deadline, _ := d.ctx.Deadline(); deadline.Before(until) {
			until = deadline
		}
	}
	ctx, cancel := context.WithDeadline(parent, until)
	defer cancel()
	return s.mutateWithTurn(ctx, g, mutation{verb: deleteNodes, calls: batch})
}

// outcome returns the result of one call that was booked together with other calls. err is the error of the booking.
// If the answer of the booking was lost, outcome returns nil if the picture shows that the call has run.
func (d *deletion) outcome(err error, g *group) error {
	if err == nil {
		return toStatus(deleteNodes, g.id, d.refused)
	}
	if p := g.picture.Load(); p != nil && g.isDirty() && d.confirmedBy(p) {
		return nil
	}
	return err
}

// nextDeletions removes deletions from the waiting ones: it returns the deletions to book next, and drops deletions
// whose caller has stopped waiting or is about to stop. The result `more` reports whether deletions with other
// deadlines are left. While this is true, the running releaseWaiting also books new deletions, and the method release
// does not start a second releaseWaiting.
func (g *group) nextDeletions() (batch []*deletion, more bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var until time.Time
	var later []*deletion
	for _, d := range g.deletions {
		deadline, _ := d.ctx.Deadline()
		switch {
		case d.ctx.Err() != nil || time.Until(deadline) < fleet.GiveUpBefore:
		case until.IsZero() || deadline.Sub(until).Abs() < sameDeadline:
			if until.IsZero() {
				until = deadline
			}
			batch = append(batch, d)
		default:
			later = append(later, d)
		}
	}
	g.deletions = later
	return batch, len(later) > 0
}
