package grpcserver

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// NodeGroupIncreaseSize books delta new instances, all or none, and returns once they have ids; the nodes come later.
func (s *Server) NodeGroupIncreaseSize(ctx context.Context, req *protos.NodeGroupIncreaseSizeRequest) (*protos.NodeGroupIncreaseSizeResponse, error) {
	delta := int(req.GetDelta())
	if delta <= 0 {
		return nil, status.Errorf(codes.InvalidArgument, "increase node group %s: delta is %d: give more than 0", req.GetId(), delta)
	}
	err := s.mutate(ctx, req.GetId(), mutation{
		verb: "increase",
		refuse: func(g *group, p *picture) error {
			if p.Target+delta > g.spec.Max {
				return status.Errorf(codes.OutOfRange, "increase node group %s: target %d + %d is above max %d",
					g.spec.ID, p.Target, delta, g.spec.Max)
			}
			return nil
		},
		book: func(ctx context.Context, group string) (fleet.Snapshot, error) {
			return s.groups.Grow(ctx, group, delta)
		},
		seen: func(before, after *picture) bool {
			added := 0
			for name := range after.counting {
				if !before.lists(name) {
					added++
				}
			}
			return added == delta
		},
	})
	if err != nil {
		return nil, err
	}
	return &protos.NodeGroupIncreaseSizeResponse{}, nil
}

// NodeGroupDeleteNodes gives instances back: on return they no longer count, and their removal is booked. All ids are
// checked before anything changes. Ids that are already gone are fine, CA repeats itself. Min is not enforced: CA does it
// for real nodes, and failed ones must go even at min (kubernetes/autoscaler PR #8387).
func (s *Server) NodeGroupDeleteNodes(ctx context.Context, req *protos.NodeGroupDeleteNodesRequest) (*protos.NodeGroupDeleteNodesResponse, error) {
	names, err := instanceNames(req)
	if err != nil {
		return nil, err
	}
	err = s.mutate(ctx, req.GetId(), mutation{
		verb: "delete nodes of",
		book: func(ctx context.Context, group string) (fleet.Snapshot, error) {
			return s.groups.Release(ctx, group, names)
		},
		seen: func(_, after *picture) bool {
			for _, name := range names {
				if after.counts(name) {
					return false
				}
			}
			return true
		},
	})
	if err != nil {
		return nil, err
	}
	return &protos.NodeGroupDeleteNodesResponse{}, nil
}

// NodeGroupDecreaseTargetSize cancels min(|delta|, counted and not registered) instances, youngest first. CA calls it when
// it believes target and nodes differ, and from 1.36 on when a scale-up timed out; |delta| may exceed what is pending.
func (s *Server) NodeGroupDecreaseTargetSize(ctx context.Context, req *protos.NodeGroupDecreaseTargetSizeRequest) (*protos.NodeGroupDecreaseTargetSizeResponse, error) {
	delta := -int(req.GetDelta())
	if delta <= 0 {
		return nil, status.Errorf(codes.InvalidArgument, "decrease node group %s: delta is %d: give less than 0", req.GetId(), -delta)
	}
	err := s.mutate(ctx, req.GetId(), mutation{
		verb: "decrease",
		book: func(ctx context.Context, group string) (fleet.Snapshot, error) {
			return s.groups.Shrink(ctx, group, delta)
		},
	})
	if err != nil {
		return nil, err
	}
	return &protos.NodeGroupDecreaseTargetSizeResponse{}, nil
}

// instanceNames parses every node's providerID; one that is not an instance of the group refuses the whole request.
func instanceNames(req *protos.NodeGroupDeleteNodesRequest) ([]string, error) {
	names := make([]string, 0, len(req.GetNodes()))
	seen := map[string]bool{}
	for _, n := range req.GetNodes() {
		group, name, ok := fleet.ParseInstanceID(n.GetProviderID())
		if !ok || group != req.GetId() {
			return nil, status.Errorf(codes.InvalidArgument, "delete nodes of node group %s: node %q with providerID %q is not one of its instances; nothing was deleted",
				req.GetId(), n.GetName(), n.GetProviderID())
		}
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names, nil
}

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
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, withoutDeadline)
		defer cancel()
	}
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
	snapshot, err := s.groups.Snapshot(ctx, g.spec.ID)
	if err != nil || g.put(snapshot, began) != nil || !m.seen(before, newPicture(snapshot)) {
		return false
	}
	g.found()
	return true
}
