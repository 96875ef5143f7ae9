package grpcserver

import (
	"context"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/autoscaler/cluster-autoscaler/expander/grpcplugin/protos"
	helpers "k8s.io/component-helpers/resource"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wire"
)

// expander answers CA's --expander=grpc: of the node groups that would help pending pods, which one shall grow. CA
// takes all options when an RPC fails, and scales nothing when the answer is empty (CA
// expander/grpcplugin/grpc_client.go). The nodes that CA sends along are not read: a group's shape and prices are known
// here.
type expander struct{ server *Server }

// BestOptions returns the best of the options that are our groups, or several that are equally good, for CA's next
// expander to choose from; and all options that are none of our groups, because nothing is known of them.
func (e expander) BestOptions(_ context.Context, req *protos.BestOptionsRequest) (*protos.BestOptionsResponse, error) {
	var ours []bid
	resp := &protos.BestOptionsResponse{}
	for _, o := range req.GetOptions() {
		if o.GetNodeGroupId() == "" || o.GetNodeCount() < 1 {
			return nil, status.Error(codes.InvalidArgument, "choose a node group: an option needs a group and a count")
		}
		b, known, err := e.server.bid(o)
		switch {
		case err != nil:
			return nil, err
		case known:
			ours = append(ours, b)
		default:
			resp.Options = append(resp.Options, answer(o, "no node group of this server"))
		}
	}
	for _, b := range best(ours) {
		resp.Options = append(resp.Options, answer(b.option, b.String()))
		e.server.log.Info("node group chosen for Cluster Autoscaler to grow", "group", b.option.GetNodeGroupId(),
			"nodes", b.option.GetNodeCount(), "of", len(req.GetOptions()), "because", b.String())
	}
	return resp, nil
}

// answer carries no pods: CA reads the id alone.
func answer(o *protos.Option, why string) *protos.Option {
	return &protos.Option{NodeGroupId: o.GetNodeGroupId(), NodeCount: o.GetNodeCount(), Debug: why}
}

// bid is what an option costs and brings; false when it is none of our groups.
func (s *Server) bid(o *protos.Option) (bid, bool, error) {
	g := s.roster.Load().byID[o.GetNodeGroupId()]
	if g == nil {
		return bid{}, false, nil
	}
	pods, err := podsOf(o)
	if err != nil {
		return bid{}, false, err
	}
	b := bid{option: o, room: Weight(g.terms.Load().spec.Shape) * float64(o.GetNodeCount())}
	for _, pod := range pods {
		b.asked += max(leastWeight, Weight(requestsOf(pod)))
	}
	b.cost, b.warm = s.costOf(g, int(o.GetNodeCount()))
	return b, true, nil
}

// podsOf reads the pods that the option helps, in both wire generations.
func podsOf(o *protos.Option) ([]*corev1.Pod, error) {
	raw := wire.Fields(o, fieldOptionPod)
	if len(raw) == 0 {
		return slices.DeleteFunc(slices.Clone(o.GetPod()), func(p *corev1.Pod) bool { return p == nil }), nil
	}
	pods := make([]*corev1.Pod, len(raw))
	for i, r := range raw {
		pods[i] = &corev1.Pod{}
		if err := pods[i].Unmarshal(r); err != nil {
			return nil, status.Errorf(codes.InvalidArgument, "choose a node group: a pod of %s cannot be read: %v",
				o.GetNodeGroupId(), err)
		}
	}
	return pods, nil
}

// costOf is what so many more nodes of the group cost in an hour, taken from the cheapest places on, as scale-outs do;
// what nobody has room for costs as much as the dearest. warm is the share of them that comes over a peering which is
// there.
func (s *Server) costOf(g *group, nodes int) (cost, warm float64) {
	left := nodes
	f, _ := s.figure(g.id)
	for _, p := range f.places {
		n := min(p.nodes, left)
		left -= n
		price := p.price
		if price <= 0 {
			price = Weight(g.terms.Load().spec.Shape)
		}
		cost += float64(n) * price
		if p.peered {
			warm += float64(n) / float64(nodes)
		}
	}
	return cost + float64(left)*s.nodePrice(g), warm
}

// mostAsked is the largest amount of a resource that a pod is believed to ask for. Kubernetes takes 1e9999 for a
// quantity, too, which makes a price infinite, and a sum with it takes minutes.
const mostAsked = int64(1e18)

// requestsOf are what the pod asks for, each amount between 0 and mostAsked. It changes the pod.
func requestsOf(pod *corev1.Pod) corev1.ResourceList {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			bound(list[i].Resources.Requests)
		}
	}
	bound(pod.Spec.Overhead)
	if whole := pod.Spec.Resources; whole != nil {
		bound(whole.Requests)
	}
	return helpers.PodRequests(pod, helpers.PodResourcesOptions{})
}

func bound(list corev1.ResourceList) {
	for name, quantity := range list {
		switch n := quantity.AsApproximateFloat64(); {
		case n > float64(mostAsked):
			list[name] = *resource.NewQuantity(mostAsked, resource.DecimalSI)
		case n < 0:
			list[name] = resource.Quantity{}
		}
	}
}
