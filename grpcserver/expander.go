package grpcserver

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/autoscaler/cluster-autoscaler/expander/grpcplugin/protos"
	helpers "k8s.io/component-helpers/resource"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wire"
)

// expander serves CA's --expander=grpc. CA sends options. An option consists of a node group that can run pending
// pods, and of the number of nodes to add. The expander chooses the best options. When the RPC fails, CA continues
// with all options. When the answer is empty, CA adds no nodes (CA expander/grpcplugin/grpc_client.go). The expander
// does not read the nodes in the request, because the server knows the shape and the prices of each group.
type expander struct{ server *Server }

// These constants are the numbers of the fields of BestOptionsRequest and Option (CA
// expander/grpcplugin/protos/expander.proto).
const (
	fieldOptions                       protowire.Number = 1
	fieldOptionGroup, fieldOptionNodes protowire.Number = 1, 2
	fieldOptionFirstPod                protowire.Number = 4 // from CA up to 1.34, see fieldOptionPod
)

// These constants bound one request. They permit a request with 500 pods, each in 60 options.
const (
	maxOptions    = 1000
	maxOptionPods = 50_000
)

// options holds the part of CA's BestOptionsRequest that the server uses. CA sends complete pods, and a client can
// encode very many pods in a small request. Therefore the server decodes the pods one after the other, and keeps only
// their weight.
type options struct {
	all []option
	err error // the error of decoding; nil for a well-formed request
}

// option is one node group to which CA may add nodes.
type option struct {
	group     string
	nodes     int32
	requested float64 // Weight of the requests of the option's pods
}

// read decodes a request. It stores the error of a malformed request in o.err, and the handler then answers with the
// code InvalidArgument. If read returned the error, gRPC would answer with the code Internal.
func (o *options) read(raw []byte) {
	pods, scratch := 0, &corev1.Pod{}
	o.err = wire.Each(raw, func(number protowire.Number, value []byte) error {
		if number != fieldOptions {
			return nil
		}
		if len(o.all) == maxOptions {
			return fmt.Errorf("the request has more than %d options", maxOptions)
		}
		one, err := readOption(value, &pods, scratch)
		o.all = append(o.all, one)
		return err
	})
}

// readOption decodes one option. It adds the number of the option's pods to *pods. It decodes each pod into scratch,
// which it reuses for the next pod.
func readOption(raw []byte, pods *int, scratch *corev1.Pod) (o option, err error) {
	var first, second float64 // the weight in a request of CA up to 1.34, and in a request of later versions
	later := false
	o.nodes = int32(wire.Varint(raw, fieldOptionNodes)) //nolint:gosec // as protobuf does
	err = wire.Each(raw, func(number protowire.Number, value []byte) error {
		switch number {
		case fieldOptionGroup:
			if o.group = string(value); !utf8.ValidString(o.group) {
				return errors.New("the id of a node group is no text")
			}
			return nil
		case fieldOptionFirstPod, fieldOptionPod:
		default:
			return nil
		}
		if *pods++; *pods > maxOptionPods {
			return fmt.Errorf("the request has more than %d pods", maxOptionPods)
		}
		if err := wire.PodResources(value, scratch); err != nil {
			return err
		}
		weight := max(minWeight, Weight(requestsOf(scratch)))
		if number == fieldOptionPod {
			second, later = second+weight, true
		} else {
			first += weight
		}
		return nil
	})
	if o.requested = first; later {
		o.requested = second
	}
	return o, err
}

// codec is the codec of gRPC. Only messages of the type options are decoded in another way, see Unmarshal.
type codec struct{ encoding.CodecV2 }

// Unmarshal decodes a message of the type options with the method read, and every other message as gRPC does.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	o, ok := v.(*options)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	raw := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer raw.Free()
	o.read(raw.ReadOnlyData())
	return nil
}

// bestOptions describes the expander service to gRPC. Unlike the generated description, it uses the type options for
// the request.
var bestOptions = grpc.ServiceDesc{ServiceName: expanderService, HandlerType: (*any)(nil), Metadata: "expander.proto",
	Methods: []grpc.MethodDesc{{MethodName: "BestOptions", Handler: func(server any, ctx context.Context,
		decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
		in := &options{}
		if err := decode(in); err != nil {
			return nil, err
		}
		handle := func(ctx context.Context, in any) (any, error) {
			return server.(expander).BestOptions(ctx, in.(*options)) //nolint:forcetypeassert // as registered
		}
		if intercept == nil {
			return handle(ctx, in)
		}
		info := &grpc.UnaryServerInfo{Server: server, FullMethod: "/" + expanderService + "/BestOptions"}
		return intercept(ctx, in, info, handle)
	}}}}

// BestOptions returns the best option among the options for groups of this server. If several options are equally
// good, it returns all of these options, and CA's next expander chooses one. It also returns all options for groups
// that this server does not serve, because it cannot compare them.
func (e expander) BestOptions(_ context.Context, req *options) (*protos.BestOptionsResponse, error) {
	if req.err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "choose a node group: the request cannot be read: %v", req.err)
	}
	var ours []score
	resp := &protos.BestOptionsResponse{}
	for _, o := range req.all {
		if o.group == "" || o.nodes < 1 {
			return nil, status.Error(codes.InvalidArgument, "choose a node group: an option needs a group and a count")
		}
		if b, known := e.server.score(o); known {
			ours = append(ours, b)
		} else {
			resp.Options = append(resp.Options, answer(o, "not a node group of this server"))
		}
	}
	for _, b := range best(ours) {
		resp.Options = append(resp.Options, answer(b.option, b.String()))
		e.server.log.Info("node group chosen for Cluster Autoscaler to grow", "group", b.option.group,
			"nodes", b.option.nodes, "of", len(req.all), "because", b.String())
	}
	return resp, nil
}

// answer returns the option in the form of the response. It omits the pods, because CA reads only the group's id.
func answer(o option, why string) *protos.Option {
	return &protos.Option{NodeGroupId: o.group, NodeCount: o.nodes, Debug: why}
}

// score returns the score of an option. It returns false when this server does not serve the option's group.
func (s *Server) score(o option) (score, bool) {
	g := s.roster.Load().byID[o.group]
	if g == nil {
		return score{}, false
	}
	b := score{option: o, requested: o.requested, room: Weight(g.terms.Load().spec.Shape) * float64(o.nodes)}
	b.cost, b.warm = s.costOf(g, int(o.nodes))
	return b, true
}

// costOf returns the hourly cost of additional nodes of the group. It assumes that they use the cheapest free
// capacity first, as a scale-out does. For a node without known free capacity it assumes the price of the most
// expensive offer. The result `warm` is the share of the nodes that use an existing peering.
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

// maxPodRequest bounds the request of a pod for one resource. Kubernetes accepts the quantity 1e9999. The price of
// this quantity is infinite, and it takes minutes to add the quantity to another.
const maxPodRequest = int64(1e18)

// requestsOf returns the requests of the pod. It first changes each amount in the pod that is not between 0 and
// maxPodRequest.
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
		case n > float64(maxPodRequest):
			list[name] = *resource.NewQuantity(maxPodRequest, resource.DecimalSI)
		case n < 0:
			list[name] = resource.Quantity{}
		}
	}
}
