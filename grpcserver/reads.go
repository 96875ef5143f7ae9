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

// firstLoadWait bounds the wait of a read for the first load of the view. After a restart of this server, CA reconnects
// before the view is loaded. An error would make CA keep an empty instance list for up to two minutes (CA
// clusterstate/utils/node_instances_cache.go).
const firstLoadWait = time.Second

// NodeGroups lists the configured groups, and groups removed from the config until they are empty. It omits a group
// that has never been read, so that CA keeps all other groups. It never fails: CA treats an error as "no groups" and
// forgets its scale-ups (CA externalgrpc_cloud_provider.go).
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

// NodeGroupForNode decides only by the providerID, which placeholders, CA's fake nodes and real nodes all carry. It
// returns the group when the instance counts, an empty id for any other Node, and never an error. A placeholder, whose
// name is the instance's id, keeps its group for releasedFor after the instance was released. CA also reads min and max
// from this answer.
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

// NodeGroupTargetSize returns the number of instances that count.
func (s *Server) NodeGroupTargetSize(ctx context.Context,
	req *protos.NodeGroupTargetSizeRequest) (*protos.NodeGroupTargetSizeResponse, error) {
	_, p, err := s.pictureOf(ctx, req.GetId())
	if err != nil {
		return nil, err
	}
	return &protos.NodeGroupTargetSizeResponse{TargetSize: int32(p.Target)}, nil
}

// NodeGroupNodes lists the instances, including placeholders, with their instance ids.
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

// NodeGroupTemplateNodeInfo returns the template of the group's next node, in both wire generations.
func (s *Server) NodeGroupTemplateNodeInfo(_ context.Context,
	req *protos.NodeGroupTemplateNodeInfoRequest) (*protos.NodeGroupTemplateNodeInfoResponse, error) {
	g, err := s.group(req.GetId())
	if err != nil {
		return nil, err
	}
	return g.terms.Load().template, nil
}

// GPULabel returns an empty label, because no label distinguishes our GPU nodes. After an error CA would repeat the
// call for each node and loop.
func (s *Server) GPULabel(context.Context, *protos.GPULabelRequest) (*protos.GPULabelResponse, error) {
	return &protos.GPULabelResponse{}, nil
}

// GetAvailableGPUTypes returns an empty list; CA uses it only for metric labels.
func (s *Server) GetAvailableGPUTypes(context.Context,
	*protos.GetAvailableGPUTypesRequest) (*protos.GetAvailableGPUTypesResponse, error) {
	return &protos.GetAvailableGPUTypesResponse{}, nil
}

// Cleanup does nothing: a CA that exits calls it during every rolling restart.
func (s *Server) Cleanup(context.Context, *protos.CleanupRequest) (*protos.CleanupResponse, error) {
	return &protos.CleanupResponse{}, nil
}

// pictureOf returns a group and its picture. It returns Unavailable only before the group's first snapshot.
func (s *Server) pictureOf(ctx context.Context, id string) (*group, *picture, error) {
	g, err := s.group(id)
	if err != nil {
		return nil, nil, err
	}
	if g.picture.Load() == nil {
		s.awaitLoad(ctx)
	}
	if g.picture.Load() == nil { // new in this replica; another replica may have started it
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

// message returns the group's entry for CA. A retired group may shrink to zero and not grow.
func (s *Server) message(r *roster, g *group) *protos.NodeGroup {
	m := &protos.NodeGroup{Id: g.id, MaxSize: int32(s.maxForCA(r, g))}
	if t := g.terms.Load(); !t.retired {
		m.MinSize = min(int32(t.spec.Min), m.MaxSize)
	}
	return m
}

// debug returns one line for CA's logs.
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
