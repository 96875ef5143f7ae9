package grpcserver

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// firstLoadWait bounds the time for which a read waits until the view is loaded. After a restart of this server, CA
// may send a read before the view is loaded. If the server returned an error, CA would keep an empty instance list
// for up to two minutes (CA clusterstate/utils/node_instances_cache.go).
const firstLoadWait = time.Second

// NodeGroups lists the configured groups. It also lists groups that were removed from the config, until they are
// empty. It omits a group that the server has never read. NodeGroups never fails, because CA treats an error as "no
// groups" and forgets its scale-ups (CA externalgrpc_cloud_provider.go).
func (s *Server) NodeGroups(ctx context.Context, _ *protos.NodeGroupsRequest) (*protos.NodeGroupsResponse, error) {
	s.awaitLoad(ctx)
	r := s.roster.Load()
	resp := &protos.NodeGroupsResponse{}
	for _, g := range r.list {
		if p := g.picture.Load(); p != nil {
			m := s.message(r, g)
			m.Debug = g.debug(p)
			resp.NodeGroups = append(resp.NodeGroups, m)
		}
	}
	return resp, nil
}

// NodeGroupForNode finds the instance by the providerID, which real Nodes and all of CA's fake Nodes have. If the
// instance counts, NodeGroupForNode returns its group, from which CA also reads min and max. For any other Node it
// returns an empty id. It never returns an error. CA creates a placeholder for an instance without a Node: a fake
// Node whose name is the instance's id. For a placeholder, NodeGroupForNode still returns the group until releasedFor
// has passed since the release of the instance.
func (s *Server) NodeGroupForNode(_ context.Context,
	req *protos.NodeGroupForNodeRequest) (*protos.NodeGroupForNodeResponse, error) {
	id, name, ok := fleet.ParseInstanceID(req.GetNode().GetProviderID())
	r := s.roster.Load()
	if g := r.byID[id]; ok && g != nil {
		p, placeholder := g.picture.Load(), req.GetNode().GetName() == req.GetNode().GetProviderID()
		if p.counts(name) || placeholder && p.released(name, time.Now()) {
			return &protos.NodeGroupForNodeResponse{NodeGroup: s.message(r, g)}, nil
		}
	}
	return &protos.NodeGroupForNodeResponse{NodeGroup: &protos.NodeGroup{}}, nil
}

// NodeGroupTargetSize returns the number of instances that count towards the target size.
func (s *Server) NodeGroupTargetSize(ctx context.Context,
	req *protos.NodeGroupTargetSizeRequest) (*protos.NodeGroupTargetSizeResponse, error) {
	_, p, err := s.pictureOf(ctx, req.GetId())
	if err != nil {
		return nil, err
	}
	return &protos.NodeGroupTargetSizeResponse{TargetSize: int32(p.Target)}, nil
}

// NodeGroupNodes lists the group's instances by their ids, including instances without a Node.
func (s *Server) NodeGroupNodes(ctx context.Context, req *protos.NodeGroupNodesRequest) (*protos.NodeGroupNodesResponse,
	error) {
	_, p, err := s.pictureOf(ctx, req.GetId())
	if err != nil {
		return nil, err
	}
	out := make([]*protos.Instance, len(p.Instances))
	for i, v := range p.Instances {
		out[i] = toInstance(p.Group, v)
	}
	return &protos.NodeGroupNodesResponse{Instances: out}, nil
}

// NodeGroupTemplateNodeInfo returns the template of the group's next node. The template is in the field that CA up to
// 1.34 reads, and also in the field that later versions read.
func (s *Server) NodeGroupTemplateNodeInfo(_ context.Context,
	req *protos.NodeGroupTemplateNodeInfoRequest) (*protos.NodeGroupTemplateNodeInfoResponse, error) {
	g, err := s.group(req.GetId())
	if err != nil {
		return nil, err
	}
	return g.terms.Load().template, nil
}

// GPULabel returns an empty label, because no label distinguishes our GPU nodes. If GPULabel returned an error, CA
// would repeat the call in each loop and for each node.
func (s *Server) GPULabel(context.Context, *protos.GPULabelRequest) (*protos.GPULabelResponse, error) {
	return &protos.GPULabelResponse{}, nil
}

// GetAvailableGPUTypes returns an empty list; CA uses it only for metric labels.
func (s *Server) GetAvailableGPUTypes(context.Context,
	*protos.GetAvailableGPUTypesRequest) (*protos.GetAvailableGPUTypesResponse, error) {
	return &protos.GetAvailableGPUTypesResponse{}, nil
}

// Cleanup does nothing, because CA calls it at every exit, for example during a rolling restart.
func (s *Server) Cleanup(context.Context, *protos.CleanupRequest) (*protos.CleanupResponse, error) {
	return &protos.CleanupResponse{}, nil
}

// pictureOf returns a group and its picture. It returns NotFound for an unknown id, and Unavailable if the group's
// first snapshot cannot be read.
func (s *Server) pictureOf(ctx context.Context, id string) (*group, *picture, error) {
	g, err := s.group(id)
	if err != nil {
		return nil, nil, err
	}
	if g.picture.Load() == nil {
		s.awaitLoad(ctx)
	}
	if g.picture.Load() == nil { // the group is new in this replica; another replica may have started the group
		ctx, cancel := context.WithTimeout(ctx, firstLoadWait)
		defer cancel()
		_, _ = s.readGroup(ctx, g, false)
	}
	if p := g.picture.Load(); p != nil {
		return g, p, nil
	}
	return nil, nil, status.Errorf(codes.Unavailable, "node group %s has not been read yet since this server started", id)
}

// awaitLoad waits until the view is loaded, for at most firstLoadWait.
func (s *Server) awaitLoad(ctx context.Context) {
	timer := time.NewTimer(firstLoadWait)
	defer timer.Stop()
	select {
	case <-s.loaded:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// message returns the group in the form in which CA receives it. For a retired group, min is 0 and max is the target
// size.
func (s *Server) message(r *roster, g *group) *protos.NodeGroup {
	m := &protos.NodeGroup{Id: g.id, MaxSize: int32(s.maxForCA(r, g))}
	if t := g.terms.Load(); !t.retired {
		m.MinSize = min(int32(t.spec.Min), m.MaxSize)
	}
	return m
}

// debug returns one line about the group, which CA writes into its logs.
func (g *group) debug(p *picture) string {
	states := map[fleet.State]int{}
	for _, i := range p.Instances {
		states[i.State]++
	}
	text := fmt.Sprintf("target %d (%d running, %d creating), %d deleting, as of %s/%d", p.Target,
		states[fleet.StateRunning], states[fleet.StateCreating], states[fleet.StateDeleting], p.Epoch, p.Revision)
	if p.Paused {
		text += ", paused"
	}
	if g.terms.Load().retired {
		text += ", no longer configured"
	}
	if g.isDirty() {
		text += ", outcome of the last operation unknown"
	}
	if why := g.unusable.Load(); why != nil {
		text += ", unavailable: " + why.Error()
	}
	return text
}
