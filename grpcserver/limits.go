package grpcserver

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
)

// admitGrowth returns an error if the group must not grow by delta nodes. The code is FailedPrecondition if the group
// is no longer configured, and OutOfRange if all groups together would exceed a limit. If limits are set, only one
// group grows at a time, so that two groups cannot exceed a limit together: admitGrowth blocks while another group
// grows, and the caller must call done when the group has grown.
func (s *Server) admitGrowth(ctx context.Context, g *group, delta int) (done func(), err error) {
	if g.terms.Load().retired {
		return nil, status.Errorf(codes.FailedPrecondition,
			"increase node group %s: it is no longer configured and only shrinks", g.id)
	}
	if !s.roster.Load().limits.Any() {
		s.unlimited.Add(1)
		if !s.roster.Load().limits.Any() { // if this is false, limits were configured after the check above
			return func() { s.unlimited.Add(-1) }, nil
		}
		s.unlimited.Add(-1)
	}
	if err := s.growing.Acquire(ctx, 1); err != nil {
		return nil, toStatus(increase, g.id, err)
	}
	done = func() { s.growing.Release(1) }
	if err := s.checkLimits(g, delta); err != nil {
		done()
		return nil, err
	}
	return done, nil
}

func (s *Server) checkLimits(g *group, delta int) error {
	r := s.roster.Load()
	use, unknown := r.use()
	switch {
	case !s.searched.Load():
		unknown = "it is known which groups run"
	case s.unlimited.Load() > 0:
		unknown = "the increases that started before limits were set have ended"
	case unknown != "":
		unknown = "node group " + unknown + " has been read"
	}
	if unknown != "" {
		return status.Errorf(codes.Unavailable,
			"increase node group %s: the limits cannot be checked until %s", g.id, unknown)
	}
	if why := r.limits.Over(use, delta, g.terms.Load().spec.Shape); why != "" {
		return status.Errorf(codes.OutOfRange, "increase node group %s: %s", g.id, why)
	}
	return nil
}

// use returns the resources of the counted instances of all groups. If the size of a group is currently unknown, the
// result `unknown` is the name of this group.
func (r *roster) use() (use Use, unknown string) {
	for _, g := range r.list {
		p := g.picture.Load()
		if p == nil || g.isDirty() {
			return use, g.id
		}
		use.Add(p.Target, g.terms.Load().spec.Shape)
	}
	return use, ""
}

// maxTarget is the largest max that a config may set for a group.
const maxTarget = 1000

// maxForCA returns the max that CA receives for the group. This max excludes growth that is not permitted by the
// limits, the spending or the offers. If CA requested such growth, the server would refuse it. CA treats a refused
// increase as a failure of the group and backs off. The max is never below the target size.
func (s *Server) maxForCA(r *roster, g *group) int {
	t := g.terms.Load()
	target, paused := 0, false
	if p := g.picture.Load(); p != nil {
		target, paused = p.Target, p.Paused
	}
	if paused || t.retired || g.unusable.Load() != nil {
		return target
	}
	most := t.spec.Max
	if p := g.picture.Load(); p != nil {
		more, left := s.affordable(g, p, time.Now())
		if left != money.Unbounded {
			more = share(more, r.sharing(g)) // so that groups that grow in one loop of CA do not exceed the limit together
		}
		most = min(most, target+more)
	}
	if f, ok := s.figure(g.id); ok {
		most = max(target, min(most, f.ceiling))
	}
	if !r.limits.Any() {
		return most
	}
	room := 0
	if use, unknown := r.use(); unknown == "" {
		room = share(r.limits.Room(use, maxTarget, t.spec.Shape), r.sharers(g))
	}
	return max(min(t.spec.Min, most), min(most, target+room))
}
