package grpcserver

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// withinLimits refuses growth that would pass a limit of all groups together: OutOfRange with the limit and the figures.
// Until done is called no other group grows, so that two of them cannot pass a limit together.
func (s *Server) withinLimits(ctx context.Context, id string, delta int) (done func(), err error) {
	if !s.roster.Load().limits.Any() {
		s.unlimited.Add(1)
		if !s.roster.Load().limits.Any() { // else a limit came between
			return func() { s.unlimited.Add(-1) }, nil
		}
		s.unlimited.Add(-1)
	}
	select {
	case <-s.growing:
	case <-ctx.Done():
		return nil, wall("increase", id, ctx.Err())
	}
	done = func() { s.growing <- struct{}{} }
	if err := s.checkLimits(id, delta); err != nil {
		done()
		return nil, err
	}
	return done, nil
}

func (s *Server) checkLimits(id string, delta int) error {
	g, err := s.group(id)
	if err != nil {
		return err
	}
	if _, ok := s.groups.(Register); ok && !s.found.Load() {
		return status.Errorf(codes.Unavailable, "increase node group %s: the limits cannot be checked until it is known which groups run", id)
	}
	r := s.roster.Load()
	if s.unlimited.Load() > 0 {
		return status.Errorf(codes.Unavailable, "increase node group %s: the limits cannot be checked until what began to grow before they came has grown", id)
	}
	use, unknown := r.use()
	if unknown != "" {
		return status.Errorf(codes.Unavailable, "increase node group %s: the limits cannot be checked until node group %s has been read", id, unknown)
	}
	if why := r.limits.Over(use, delta, g.terms.Load().spec.Shape); why != "" {
		return status.Errorf(codes.OutOfRange, "increase node group %s: %s", id, why)
	}
	return nil
}

// use sums what the counted instances of all groups take. unknown names a group of which that cannot be told now.
func (r *roster) use() (use fleet.Use, unknown string) {
	for _, g := range r.list {
		p := g.picture.Load()
		if p == nil || !g.dirtyUntil().IsZero() {
			return use, g.id
		}
		use.Add(p.Target, g.terms.Load().spec.Shape)
	}
	return use, ""
}

// most is the group's max as CA is told it: no more than the limits leave room for. CA then does not ask for what would be
// refused, which it would take for a failure of the group and back off.
func (r *roster) most(g *group) int {
	t := g.terms.Load()
	target := 0
	if p := g.picture.Load(); p != nil {
		target = p.Target
	}
	if t.retired {
		return target
	}
	if !r.limits.Any() {
		return t.spec.Max
	}
	use, unknown := r.use()
	if unknown != "" {
		return t.spec.Max
	}
	return max(t.spec.Min, target+r.limits.Room(use, t.spec.Max-target, t.spec.Shape))
}
