package grpcserver

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// NodeGroupIncreaseSize books delta new instances, all or none, and returns when they have ids. It does not wait for
// their nodes.
func (s *Server) NodeGroupIncreaseSize(ctx context.Context,
	req *protos.NodeGroupIncreaseSizeRequest) (*protos.NodeGroupIncreaseSizeResponse, error) {
	delta := int(req.GetDelta())
	if delta <= 0 {
		return nil, status.Errorf(codes.InvalidArgument, "increase node group %s: delta is %d: give more than 0", req.GetId(),
			delta)
	}
	return &protos.NodeGroupIncreaseSizeResponse{},
		s.mutate(ctx, req.GetId(), mutation{verb: increase, delta: delta})
}

// NodeGroupDeleteNodes releases instances: on return they no longer count, and their removal is booked. It checks all
// ids before it changes anything. Ids of released instances are accepted, because CA repeats its calls. Min is not
// enforced: CA enforces it for real nodes, and must be able to delete failed instances even at min
// (kubernetes/autoscaler PR #8387).
func (s *Server) NodeGroupDeleteNodes(ctx context.Context,
	req *protos.NodeGroupDeleteNodesRequest) (*protos.NodeGroupDeleteNodesResponse, error) {
	names, err := instanceNames(req)
	if err != nil {
		return nil, err
	}
	return &protos.NodeGroupDeleteNodesResponse{}, s.release(ctx, req.GetId(), names)
}

// NodeGroupDecreaseTargetSize cancels min(|delta|, counted and not registered) instances, youngest first. CA calls it
// when it finds that target and nodes differ, and from 1.36 on after the timeout of a scale-up. |delta| may exceed the
// number of pending instances.
func (s *Server) NodeGroupDecreaseTargetSize(ctx context.Context,
	req *protos.NodeGroupDecreaseTargetSizeRequest) (*protos.NodeGroupDecreaseTargetSizeResponse, error) {
	delta := -int(req.GetDelta())
	if delta <= 0 {
		return nil, status.Errorf(codes.InvalidArgument, "decrease node group %s: delta is %d: give less than 0", req.GetId(),
			-delta)
	}
	return &protos.NodeGroupDecreaseTargetSizeResponse{},
		s.mutate(ctx, req.GetId(), mutation{verb: decrease, delta: delta})
}

// instanceNames returns the instance names in the providerIDs of all nodes. It refuses the whole request if one node is
// not an instance of the group.
func instanceNames(req *protos.NodeGroupDeleteNodesRequest) ([]string, error) {
	names := make([]string, 0, len(req.GetNodes()))
	seen := map[string]bool{}
	for _, n := range req.GetNodes() {
		group, name, ok := fleet.ParseInstanceID(n.GetProviderID())
		if !ok || group != req.GetId() {
			return nil, status.Errorf(codes.InvalidArgument,
				"delete nodes of node group %s: node %q with providerID %q is not one of its instances; nothing was deleted",
				req.GetId(), n.GetName(), n.GetProviderID())
		}
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names, nil
}
