package conformance

import (
	"context"
	"math"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"
)

var errBroken = status.Error(codes.Internal, "broken")

// The function `on` replaces the correct answer to one kind of request.
func on[Q, R any](answer func(s *site, req Q, right R) (R, error)) breaks {
	return func(s *site, ctx context.Context, req any, handler grpc.UnaryHandler) (any, error) {
		q, ok := req.(Q)
		if !ok {
			return handler(ctx, req)
		}
		right, err := handler(ctx, req)
		if err != nil {
			return nil, err
		}
		return answer(s, q, right.(R))
	}
}

// The function `instead` replaces the correct handler of one kind of request.
func instead[Q any](answer func(s *site, ctx context.Context, req Q, right grpc.UnaryHandler) (any, error)) breaks {
	return func(s *site, ctx context.Context, req any, handler grpc.UnaryHandler) (any, error) {
		if q, ok := req.(Q); ok {
			return answer(s, ctx, q, handler)
		}
		return handler(ctx, req)
	}
}

// fails answers calls with an error.
func fails[Q any](s *site, ctx context.Context, req any, handler grpc.UnaryHandler) (any, error) {
	if _, ok := req.(Q); ok {
		return nil, errBroken
	}
	return handler(ctx, req)
}

// agrees answers calls with OK and does nothing.
func agrees[Q any](resp any) breaks {
	return instead(func(*site, context.Context, Q, grpc.UnaryHandler) (any, error) { return resp, nil })
}

func templates(change func(first, second *corev1.Node) (*corev1.Node, *corev1.Node)) breaks {
	return on(func(_ *site, _ *protos.NodeGroupTemplateNodeInfoRequest,
		_ *protos.NodeGroupTemplateNodeInfoResponse) (*protos.NodeGroupTemplateNodeInfoResponse, error) {
		return bothTemplates(change(memoryNode(), memoryNode())), nil
	})
}

// template makes the same change to the Node in both fields of the answer.
func template(change func(*corev1.Node)) breaks {
	return templates(func(first, second *corev1.Node) (*corev1.Node, *corev1.Node) {
		change(first)
		change(second)
		return first, second
	})
}

func nodesAre(change func(list []*protos.Instance) []*protos.Instance) breaks {
	return on(func(_ *site, _ *protos.NodeGroupNodesRequest,
		r *protos.NodeGroupNodesResponse) (*protos.NodeGroupNodesResponse, error) {
		return &protos.NodeGroupNodesResponse{Instances: change(r.GetInstances())}, nil
	})
}

func groupsAre(change func(list []*protos.NodeGroup) []*protos.NodeGroup) breaks {
	return on(func(_ *site, _ *protos.NodeGroupsRequest,
		r *protos.NodeGroupsResponse) (*protos.NodeGroupsResponse, error) {
		return &protos.NodeGroupsResponse{NodeGroups: change(r.GetNodeGroups())}, nil
	})
}

func targetIs(change func(right int32) int32) breaks {
	return on(func(_ *site, _ *protos.NodeGroupTargetSizeRequest,
		r *protos.NodeGroupTargetSizeResponse) (*protos.NodeGroupTargetSizeResponse, error) {
		return &protos.NodeGroupTargetSizeResponse{TargetSize: change(r.GetTargetSize())}, nil
	})
}

// groupOfNode changes the group of a Node in the answer.
func groupOfNode(change func(node *protos.ExternalGrpcNode, g *protos.NodeGroup) (*protos.NodeGroup, error)) breaks {
	return on(func(_ *site, q *protos.NodeGroupForNodeRequest,
		r *protos.NodeGroupForNodeResponse) (*protos.NodeGroupForNodeResponse, error) {
		g, err := change(q.GetNode(), r.GetNodeGroup())
		return &protos.NodeGroupForNodeResponse{NodeGroup: g}, err
	})
}

// options answers with o. If later is true, it answers only requests of CA 1.35 and later; if false, only requests of
// earlier versions.
func options(later bool, o *protos.NodeGroupAutoscalingOptions) breaks {
	return instead(func(_ *site, _ context.Context, q *protos.NodeGroupAutoscalingOptionsRequest,
		_ grpc.UnaryHandler) (any, error) {
		if later == (q.GetDefaults().GetMaxNodeProvisionTime() == nil) {
			return &protos.NodeGroupAutoscalingOptionsResponse{NodeGroupAutoscalingOptions: o}, nil
		}
		return nil, status.Error(codes.Unimplemented, "none")
	})
}

var nothing = &protos.NodeGroup{}

// forget removes an instance from the list if `drop` returns true for it, so that the instance's id is assigned
// again.
func (m *memory) forget(drop func(*memoryInstance) bool) {
	kept := m.list[:0]
	for _, i := range m.list {
		if !drop(i) {
			kept = append(kept, i)
		}
	}
	m.list = kept
}

var broken = map[string]map[string]breaks{
	"refresh": {"error": fails[*protos.RefreshRequest]},
	"groups-listed": {
		"error":       fails[*protos.NodeGroupsRequest],
		"an id twice": groupsAre(func(l []*protos.NodeGroup) []*protos.NodeGroup { return append(l, l[0]) }),
		"an empty id": groupsAre(func([]*protos.NodeGroup) []*protos.NodeGroup { return []*protos.NodeGroup{nothing} }),
	},
	"groups-stable": {"one comes and goes": func(s *site, ctx context.Context, req any,
		right grpc.UnaryHandler) (any, error) {
		if _, ok := req.(*protos.NodeGroupsRequest); ok && s.clock.Add(1)%2 == 0 {
			return &protos.NodeGroupsResponse{NodeGroups: []*protos.NodeGroup{describe("cpu")}}, nil
		}
		return right(ctx, req)
	}},
	"group-bounds": {
		"min over max": groupsAre(func(l []*protos.NodeGroup) []*protos.NodeGroup { l[1].MinSize = memoryMax + 1; return l }),
		"negative min": groupsAre(func(l []*protos.NodeGroup) []*protos.NodeGroup { l[0].MinSize = -1; return l }),
	},
	"groups-answer": {
		"no target": fails[*protos.NodeGroupTargetSizeRequest], "no nodes": fails[*protos.NodeGroupNodesRequest],
	},
	"target-bounds": {
		"over max": targetIs(func(int32) int32 { return memoryMax + 1 }),
		"negative": targetIs(func(int32) int32 { return -1 }),
	},
	"target-counts": {"drift": targetIs(func(right int32) int32 { return right + 1 })},
	"unknown-group": {
		"size 0":   agrees[*protos.NodeGroupTargetSizeRequest](&protos.NodeGroupTargetSizeResponse{}),
		"no nodes": agrees[*protos.NodeGroupNodesRequest](&protos.NodeGroupNodesResponse{}),
		"internal": fails[*protos.NodeGroupNodesRequest],
	},
	"instance-ids": {
		"a name": nodesAre(func(l []*protos.Instance) []*protos.Instance { l[0].Id = "cpu-1"; return l }),
		"empty":  nodesAre(func(l []*protos.Instance) []*protos.Instance { l[0].Id = ""; return l }),
		"in both groups": nodesAre(func([]*protos.Instance) []*protos.Instance {
			return []*protos.Instance{{Id: "memory://1"}}
		}),
	},
	"instance-states": {
		"unspecified": nodesAre(func(l []*protos.Instance) []*protos.Instance { l[0].Status = nil; return l }),
		"running with an error": nodesAre(func(l []*protos.Instance) []*protos.Instance {
			l[0].Status.ErrorInfo = &protos.InstanceErrorInfo{ErrorCode: "X"}
			return l
		}),
		"error without a code": nodesAre(func(l []*protos.Instance) []*protos.Instance {
			l[0].Status = &protos.InstanceStatus{InstanceState: creating, ErrorInfo: &protos.InstanceErrorInfo{}}
			return l
		}),
	},
	"error-codes": {
		"a sentence": nodesAre(errorCode("no capacity in zone a")),
		"long":       nodesAre(errorCode(strings.Repeat("x", 64))),
	},
	"node-of-instance": {
		"fakes unknown": groupOfNode(func(n *protos.ExternalGrpcNode, g *protos.NodeGroup) (*protos.NodeGroup, error) {
			if n.GetName() == n.GetProviderID() {
				return nothing, nil
			}
			return g, nil
		}),
		"by name": groupOfNode(func(n *protos.ExternalGrpcNode, g *protos.NodeGroup) (*protos.NodeGroup, error) {
			if strings.HasPrefix(n.GetName(), "template-node-for-gpu") {
				return describe("cpu"), nil
			}
			return g, nil
		}),
		"error": fails[*protos.NodeGroupForNodeRequest],
	},
	"node-bounds": {"no min": groupOfNode(func(_ *protos.ExternalGrpcNode,
		g *protos.NodeGroup) (*protos.NodeGroup, error) {
		return &protos.NodeGroup{Id: g.GetId(), MaxSize: g.GetMaxSize()}, nil
	})},
	"foreign-node": {
		"error": groupOfNode(func(*protos.ExternalGrpcNode, *protos.NodeGroup) (*protos.NodeGroup, error) {
			return nil, status.Error(codes.NotFound, "whose is it?")
		}),
		"adopted": groupOfNode(func(n *protos.ExternalGrpcNode, g *protos.NodeGroup) (*protos.NodeGroup, error) {
			if n.GetProviderID() == "" {
				return describe("cpu"), nil
			}
			return g, nil
		}),
	},
	"node-at-once": {"slow": groupOfNode(func(_ *protos.ExternalGrpcNode, g *protos.NodeGroup) (*protos.NodeGroup, error) {
		return g, nil
	}).taking(60 * time.Millisecond)},
	"template-in-both": {
		"no answer": func(s *site, ctx context.Context, req any, right grpc.UnaryHandler) (any, error) {
			if _, ok := req.(*protos.NodeGroupTemplateNodeInfoRequest); ok {
				return nil, status.Error(codes.Unimplemented, "none")
			}
			return right(ctx, req)
		},
		"field 1 alone": agrees[*protos.NodeGroupTemplateNodeInfoRequest](
			&protos.NodeGroupTemplateNodeInfoResponse{NodeInfo: memoryNode()}),
		"field 2 alone": templates(func(_, second *corev1.Node) (*corev1.Node, *corev1.Node) { return nil, second }),
		"different": templates(func(first, second *corev1.Node) (*corev1.Node, *corev1.Node) {
			second.Labels["more"] = "x"
			return first, second
		}),
	},
	"template-resources": {
		"no pods":     template(func(n *corev1.Node) { delete(n.Status.Allocatable, corev1.ResourcePods) }),
		"no capacity": template(func(n *corev1.Node) { n.Status.Capacity = nil }),
		"more than there is": template(func(n *corev1.Node) {
			n.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("3")
		}),
	},
	"template-labels": {
		"an empty key": template(func(n *corev1.Node) { n.Labels[""] = "x" }),
		"a bad value":  template(func(n *corev1.Node) { n.Labels["x"] = "a b" }),
		"no arch":      template(func(n *corev1.Node) { delete(n.Labels, corev1.LabelArchStable) }),
	},
	"template-is-counted": {"virtual kubelet": template(func(n *corev1.Node) { n.Labels["type"] = "virtual-kubelet" })},
	"gpu-label":           {"error": fails[*protos.GPULabelRequest]},
	"gpu-types":           {"error": fails[*protos.GetAvailableGPUTypesRequest]},
	"gpu-label-means-gpu": {"without": template(func(n *corev1.Node) { n.Labels["gpu"] = "a100" })},
	"options-complete": {
		"thresholds alone": options(false, &protos.NodeGroupAutoscalingOptions{ScaleDownUtilizationThreshold: 0.5}),
		"error":            fails[*protos.NodeGroupAutoscalingOptionsRequest],
	},
	"options-none": {"some": options(true, &protos.NodeGroupAutoscalingOptions{ScaleDownUtilizationThreshold: 0.5})},
	"node-price": {
		"infinite": agrees[*protos.PricingNodePriceRequest](&protos.PricingNodePriceResponse{Price: math.Inf(1)}),
		"negative": agrees[*protos.PricingNodePriceRequest](&protos.PricingNodePriceResponse{Price: -1}),
		"error":    fails[*protos.PricingNodePriceRequest],
		"one generation": instead(func(_ *site, _ context.Context, q *protos.PricingNodePriceRequest,
			_ grpc.UnaryHandler) (any, error) {
			if q.GetStartTime() == nil {
				return nil, errBroken
			}
			return &protos.PricingNodePriceResponse{Price: 1}, nil
		}),
	},
	"pod-price": {
		"not a number": agrees[*protos.PricingPodPriceRequest](&protos.PricingPodPriceResponse{Price: math.NaN()}),
		"one generation": instead(func(_ *site, _ context.Context, q *protos.PricingPodPriceRequest,
			_ grpc.UnaryHandler) (any, error) {
			if q.GetPod() == nil {
				return nil, errBroken
			}
			return &protos.PricingPodPriceResponse{Price: 1}, nil
		}),
	},
	"increase-in-target": {
		"later": targetIs(func(int32) int32 { return 1 }), "refused": fails[*protos.NodeGroupIncreaseSizeRequest],
	},
	"increase-in-nodes": {"later": nodesAre(func(l []*protos.Instance) []*protos.Instance { return l[:min(len(l), 3)] })},
	"increase-resolves": {"by name": groupOfNode(func(*protos.ExternalGrpcNode,
		*protos.NodeGroup) (*protos.NodeGroup, error) {
		return nothing, nil
	})},
	"increase-at-once": {"waits for Nodes": on(func(s *site, _ *protos.NodeGroupIncreaseSizeRequest,
		r *protos.NodeGroupIncreaseSizeResponse) (*protos.NodeGroupIncreaseSizeResponse, error) {
		s.passes(2 * time.Second)
		return r, nil
	})},
	"increase-of-nothing": {
		"nothing is fine": agrees[*protos.NodeGroupIncreaseSizeRequest](&protos.NodeGroupIncreaseSizeResponse{}),
		"-1 is taken away": instead(func(s *site, ctx context.Context, q *protos.NodeGroupIncreaseSizeRequest,
			right grpc.UnaryHandler) (any, error) {
			s.with(func() { s.add(q.GetId(), 1, creating, "") })
			return right(ctx, q)
		}),
	},
	"increase-over-max": {"unchecked": unchecked},
	"increase-together": {
		"unchecked": unchecked,
		"one is lost": instead(func(s *site, ctx context.Context, q *protos.NodeGroupIncreaseSizeRequest,
			right grpc.UnaryHandler) (any, error) {
			if _, err := right(ctx, q); err != nil {
				return &protos.NodeGroupIncreaseSizeResponse{}, nil
			}
			return &protos.NodeGroupIncreaseSizeResponse{}, nil
		}),
	},
	"increase-two-groups": {
		"the second fails for want of room": on(func(s *site, q *protos.NodeGroupIncreaseSizeRequest,
			r *protos.NodeGroupIncreaseSizeResponse) (*protos.NodeGroupIncreaseSizeResponse, error) {
			s.with(func() {
				if i := s.counted(q.GetId()); q.GetId() == "gpu" {
					i[len(i)-1].code = "NoCapacity"
				}
			})
			return r, nil
		}),
		"the second is booked and refused": on(func(_ *site, q *protos.NodeGroupIncreaseSizeRequest,
			r *protos.NodeGroupIncreaseSizeResponse) (*protos.NodeGroupIncreaseSizeResponse, error) {
			if q.GetId() == "gpu" {
				return nil, errBroken
			}
			return r, nil
		}),
		"the second is not booked": instead(func(_ *site, ctx context.Context, q *protos.NodeGroupIncreaseSizeRequest,
			right grpc.UnaryHandler) (any, error) {
			if q.GetId() == "gpu" {
				return &protos.NodeGroupIncreaseSizeResponse{}, nil
			}
			return right(ctx, q)
		}),
		"the second takes from the first": on(func(s *site, q *protos.NodeGroupIncreaseSizeRequest,
			r *protos.NodeGroupIncreaseSizeResponse) (*protos.NodeGroupIncreaseSizeResponse, error) {
			if q.GetId() == "gpu" {
				s.with(func() { deleteOne(s, creating) })
			}
			return r, nil
		}),
	},
	"increase-given-up": {"a ghost": instead(func(s *site, ctx context.Context, q *protos.NodeGroupIncreaseSizeRequest,
		_ grpc.UnaryHandler) (any, error) {
		s.with(func() { s.add(q.GetId(), 1, creating, "") })
		return nil, status.Error(codes.DeadlineExceeded, "too late")
	})},
	"refresh-keeps": {"forgets": on(func(s *site, _ *protos.RefreshRequest,
		r *protos.RefreshResponse) (*protos.RefreshResponse, error) {
		s.with(func() {
			s.forget(func(i *memoryInstance) bool { return i.group == "cpu" && i.state == creating })
		})
		return r, nil
	})},
	"ids-not-reused": {"by number": on(func(s *site, q *protos.NodeGroupDeleteNodesRequest,
		r *protos.NodeGroupDeleteNodesResponse) (*protos.NodeGroupDeleteNodesResponse, error) {
		s.with(func() {
			s.forget(func(i *memoryInstance) bool { return i.state == deleting })
			s.next--
		})
		return r, nil
	})},
	"decrease-sign": {
		"nothing is fine": agrees[*protos.NodeGroupDecreaseTargetSizeRequest](&protos.NodeGroupDecreaseTargetSizeResponse{}),
		"by its amount": instead(func(_ *site, ctx context.Context, q *protos.NodeGroupDecreaseTargetSizeRequest,
			right grpc.UnaryHandler) (any, error) {
			return right(ctx, &protos.NodeGroupDecreaseTargetSizeRequest{Id: q.GetId(), Delta: -max(q.GetDelta(), 1)})
		}),
	},
	"decrease-pending": {
		"does nothing": agrees[*protos.NodeGroupDecreaseTargetSizeRequest](&protos.NodeGroupDecreaseTargetSizeResponse{}),
		"refuses":      fails[*protos.NodeGroupDecreaseTargetSizeRequest],
	},
	"decrease-clamped": {
		"refuses": fails[*protos.NodeGroupDecreaseTargetSizeRequest],
		"takes Nodes": targetIs(func(right int32) int32 {
			if right == 1 { // only the running instance
				return 0
			}
			return right
		}),
		"takes one": instead(func(_ *site, ctx context.Context, q *protos.NodeGroupDecreaseTargetSizeRequest,
			right grpc.UnaryHandler) (any, error) {
			return right(ctx, &protos.NodeGroupDecreaseTargetSizeRequest{Id: q.GetId(), Delta: -1})
		}),
	},
	"decrease-nothing": {
		"does nothing": agrees[*protos.NodeGroupDecreaseTargetSizeRequest](&protos.NodeGroupDecreaseTargetSizeResponse{}),
	},
	"decrease-then-delete": {
		"unknown": fails[*protos.NodeGroupDeleteNodesRequest],
		"twice": on(func(s *site, _ *protos.NodeGroupDeleteNodesRequest,
			r *protos.NodeGroupDeleteNodesResponse) (*protos.NodeGroupDeleteNodesResponse, error) {
			s.with(func() { deleteOne(s, creating) })
			return r, nil
		}),
	},
	"delete-lowers": {
		"later":   agrees[*protos.NodeGroupDeleteNodesRequest](&protos.NodeGroupDeleteNodesResponse{}),
		"refuses": fails[*protos.NodeGroupDeleteNodesRequest],
	},
	"delete-again": {
		"unknown": instead(func(s *site, ctx context.Context, q *protos.NodeGroupDeleteNodesRequest,
			right grpc.UnaryHandler) (any, error) {
			if len(s.ofState(deleting, q)) > 0 {
				return nil, status.Error(codes.NotFound, "there is no such instance")
			}
			return right(ctx, q)
		}),
		"twice": on(func(s *site, _ *protos.NodeGroupDeleteNodesRequest,
			r *protos.NodeGroupDeleteNodesResponse) (*protos.NodeGroupDeleteNodesResponse, error) {
			s.with(func() { deleteOne(s, creating) })
			return r, nil
		}),
	},
	"delete-all-or-none": {"what it can": instead(func(_ *site, ctx context.Context, q *protos.NodeGroupDeleteNodesRequest,
		right grpc.UnaryHandler) (any, error) {
		if _, err := right(ctx, &protos.NodeGroupDeleteNodesRequest{Id: q.GetId(), Nodes: q.GetNodes()[:1]}); err != nil {
			return nil, err
		}
		return right(ctx, q)
	})},
	"delete-other-group": {"by the id alone": instead(func(_ *site, ctx context.Context,
		q *protos.NodeGroupDeleteNodesRequest, right grpc.UnaryHandler) (any, error) {
		return right(ctx, &protos.NodeGroupDeleteNodesRequest{Id: "cpu", Nodes: q.GetNodes()})
	})},
	"delete-together": {
		"one is lost": instead(func(s *site, ctx context.Context, q *protos.NodeGroupDeleteNodesRequest,
			right grpc.UnaryHandler) (any, error) {
			if s.clock.Add(1)%2 == 0 {
				return &protos.NodeGroupDeleteNodesResponse{}, nil
			}
			return right(ctx, q)
		}),
		"refuses": fails[*protos.NodeGroupDeleteNodesRequest],
		"one after the other": instead(func(s *site, ctx context.Context, q *protos.NodeGroupDeleteNodesRequest,
			right grpc.UnaryHandler) (any, error) {
			s.passes(time.Second)
			return right(ctx, q)
		}),
	},
	"unknown-group-changes": {
		"increase": agrees[*protos.NodeGroupIncreaseSizeRequest](&protos.NodeGroupIncreaseSizeResponse{}),
		"delete":   agrees[*protos.NodeGroupDeleteNodesRequest](&protos.NodeGroupDeleteNodesResponse{}),
		"decrease": agrees[*protos.NodeGroupDecreaseTargetSizeRequest](&protos.NodeGroupDecreaseTargetSizeResponse{}),
	},
	"cleanup": {
		"deletes one": on(func(s *site, _ *protos.CleanupRequest,
			r *protos.CleanupResponse) (*protos.CleanupResponse, error) {
			s.with(func() { deleteOne(s, creating) })
			return r, nil
		}),
		"error": fails[*protos.CleanupRequest],
	},
	"gives-back": {"a ghost": on(func(s *site, _ *protos.RefreshRequest,
		r *protos.RefreshResponse) (*protos.RefreshResponse, error) {
		s.with(func() { s.add("cpu", 1, creating, "") })
		return r, nil
	})},
}

// unchecked books every request.
var unchecked = instead(func(s *site, _ context.Context, q *protos.NodeGroupIncreaseSizeRequest,
	_ grpc.UnaryHandler) (any, error) {
	s.with(func() { s.add(q.GetId(), int(q.GetDelta()), creating, "") })
	return &protos.NodeGroupIncreaseSizeResponse{}, nil
})

// taking makes each call take the time d on the clock that the rules use.
func (b breaks) taking(d time.Duration) breaks {
	return func(s *site, ctx context.Context, req any, right grpc.UnaryHandler) (any, error) {
		s.passes(d)
		return b(s, ctx, req, right)
	}
}

func errorCode(code string) func([]*protos.Instance) []*protos.Instance {
	return func(list []*protos.Instance) []*protos.Instance {
		list[0].Status = &protos.InstanceStatus{InstanceState: creating,
			ErrorInfo: &protos.InstanceErrorInfo{ErrorCode: code}}
		return list
	}
}

// deleteOne deletes an instance of the group cpu without a request.
func deleteOne(s *site, state protos.InstanceStatus_InstanceState) {
	for _, i := range s.counted("cpu") {
		if i.state == state {
			i.state = deleting
			return
		}
	}
}

// ofState returns the ids of the nodes in a request. It omits the nodes whose instances are in another state.
func (m *memory) ofState(state protos.InstanceStatus_InstanceState, q *protos.NodeGroupDeleteNodesRequest) (ids []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, node := range q.GetNodes() {
		for _, i := range m.list {
			if i.id == node.GetProviderID() && i.state == state {
				ids = append(ids, i.id)
			}
		}
	}
	return ids
}
