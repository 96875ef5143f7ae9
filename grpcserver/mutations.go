package grpcserver

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// NodeGroupIncreaseSize books delta new instances, or none if it fails. It returns when the instances have ids, and
// does not wait for their nodes.
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

// NodeGroupDeleteNodes releases instances: when it returns, they no longer count, and their removal is booked. It
// checks all ids before it changes anything. It accepts the ids of instances that are already released, because CA
// repeats its calls. It does not enforce min: CA enforces min for real nodes, and must be able to delete failed
// instances even if the size of the group is min (kubernetes/autoscaler PR #8387).
func (s *Server) NodeGroupDeleteNodes(ctx context.Context,
	req *protos.NodeGroupDeleteNodesRequest) (*protos.NodeGroupDeleteNodesResponse, error) {
	names, err := instanceNames(req)
	if err != nil {
		return nil, err
	}
	return &protos.NodeGroupDeleteNodesResponse{}, s.release(ctx, req.GetId(), names)
}

// NodeGroupDecreaseTargetSize cancels |delta| instances, the youngest first. It cancels only counted instances whose
// nodes have not registered. If there are fewer such instances than |delta|, it cancels all such instances. CA calls
// this RPC when the target size and the number of nodes differ. From 1.36 on, CA also calls the RPC after the timeout
// of a scale-up.
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

// instanceNames returns the names of the instances, which it reads from the providerIDs of the nodes. It refuses the
// whole request if the providerID of one node does not belong to the group.
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
