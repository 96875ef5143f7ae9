package grpcserver

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wire"
)

// provisionMargin is the time by which CA's max-node-provision-time must exceed budgets.total. CA starts to measure
// the time before the group does, and checks it only once in each loop.
const provisionMargin = time.Minute

// NodeGroupGetOptions returns Unimplemented. Every version of CA then uses its own flags. If the server gave any
// other answer, CA 1.35 and later would treat nodes that are not ready yet as unready (kubernetes/autoscaler #10245).
// The request contains CA's max-node-provision-time. NodeGroupGetOptions logs a warning if this time is too short for
// budgets.total.
func (s *Server) NodeGroupGetOptions(_ context.Context,
	req *protos.NodeGroupAutoscalingOptionsRequest) (*protos.NodeGroupAutoscalingOptionsResponse, error) {
	if g := s.roster.Load().byID[req.GetId()]; g != nil {
		if asked := provisionTime(req.GetDefaults()); asked > 0 && g.caWaits.Swap(int64(asked)) != int64(asked) {
			s.compareProvisionTime(g, asked)
		}
	}
	return nil, status.Error(codes.Unimplemented,
		"node groups have no options of their own: Cluster Autoscaler's flags hold")
}

func (s *Server) compareProvisionTime(g *group, asked time.Duration) {
	if total := g.terms.Load().spec.Budgets.Total.Duration; g.isGivenUpEarly() {
		s.log.Warn("Cluster Autoscaler gives up on nodes before budgets.total: raise its max-node-provision-time, or lower "+
			"budgets.total", "group", g.id, "max-node-provision-time", asked, "budgets.total", total)
	}
}

// isGivenUpEarly reports whether CA may stop waiting for a node of this group while the group is still trying to
// create the node.
func (g *group) isGivenUpEarly() bool {
	waits := time.Duration(g.caWaits.Load())
	return waits > 0 && waits < g.terms.Load().spec.Budgets.Total.Duration+provisionMargin
}

// provisionTime returns max-node-provision-time, or 0 when it is missing. CA up to 1.34 and later versions send it in
// different fields.
func provisionTime(o *protos.NodeGroupAutoscalingOptions) time.Duration {
	if old := o.GetMaxNodeProvisionTime(); old != nil {
		return old.Duration
	}
	var d durationpb.Duration
	if raw := wire.Field(o, fieldProvisionTime); raw == nil || proto.Unmarshal(raw, &d) != nil || d.CheckValid() != nil {
		return 0
	}
	return d.AsDuration()
}
