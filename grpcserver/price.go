package grpcserver

import (
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wire"
)

// These constants are the weights of resources. They are hourly prices: clouds charge about this much for a virtual
// CPU, and for a GiB of memory or huge pages. Only the ratio of the weights matters. Pods and ephemeral storage have
// the weight 0. Any other resource has the weight of a GPU.
const (
	weightCPU   = 0.03
	weightGiB   = 0.004
	weightOther = 1.0
)

// PricingNodePrice returns the price of a node of the group for the requested time. It assumes that the node uses the
// most expensive offer that the group may use. If no offer has a price, the price is the weight of the node's
// resources. Every node has a finite price, because an error would exclude the group from `--expander=price` (CA
// expander/price/price.go).
func (s *Server) PricingNodePrice(_ context.Context,
	req *protos.PricingNodePriceRequest) (*protos.PricingNodePriceResponse, error) {
	hours, err := hoursBetween(req.GetStartTime(), req.GetEndTime(), req, fieldNodeStart, fieldNodeEnd)
	if err != nil {
		return nil, err
	}
	g := s.roster.Load().byID[req.GetNode().GetLabels()[fleet.LabelGroup]]
	if g == nil {
		return nil, status.Errorf(codes.NotFound, "price node %s: its label %s names no node group of this server",
			req.GetNode().GetName(), fleet.LabelGroup)
	}
	return &protos.PricingNodePriceResponse{Price: s.nodePrice(g) * hours}, nil
}

// PricingPodPrice returns the price of the pod's requests for the requested time: the weight of the requests
// multiplied by the lowest price per unit of weight (see rate).
func (s *Server) PricingPodPrice(_ context.Context,
	req *protos.PricingPodPriceRequest) (*protos.PricingPodPriceResponse, error) {
	hours, err := hoursBetween(req.GetStartTime(), req.GetEndTime(), req, fieldPodStart, fieldPodEnd)
	if err != nil {
		return nil, err
	}
	pod := req.GetPod()
	if raw := wire.Field(req, fieldPodBytes); pod == nil && raw != nil {
		pod = &corev1.Pod{}
		if err := wire.PodResources(raw, pod); err != nil {
			return nil, status.Errorf(codes.InvalidArgument, "price pod: it cannot be read: %v", err)
		}
	}
	if pod == nil {
		return nil, status.Error(codes.InvalidArgument, "price pod: the request has no pod")
	}
	return &protos.PricingPodPriceResponse{Price: Weight(requestsOf(pod)) * s.rate() * hours}, nil
}

// nodePrice returns the hourly price of a node of the group.
func (s *Server) nodePrice(g *group) float64 {
	if f, ok := s.figure(g.id); ok && f.price > 0 {
		return f.price
	}
	return Weight(g.terms.Load().spec.Shape)
}

// rate returns the lowest hourly price of one unit of weight: it divides the price of a node of each group by the
// weight of the node's resources.
func (s *Server) rate() float64 {
	least := math.Inf(1)
	for _, g := range s.roster.Load().list {
		if w := Weight(g.terms.Load().spec.Shape); w > 0 {
			least = min(least, s.nodePrice(g)/w)
		}
	}
	if math.IsInf(least, 1) {
		return 1
	}
	return least
}

// Weight returns the hourly price of resources for which no offer has a price. Node groups are compared by their
// weights. Therefore equal resources must have equal weights in each call and on each processor. Weight adds in a
// fixed order, because a sum of floats depends on the order. It also rounds each product before it adds the product.
// Otherwise some processors would multiply and add in one operation, with another result.
func Weight(resources corev1.ResourceList) (sum float64) {
	for _, name := range slices.Sorted(maps.Keys(resources)) {
		quantity := resources[name]
		n := quantity.AsApproximateFloat64()
		switch {
		case name == corev1.ResourceCPU:
			sum += float64(n * weightCPU)
		case name == corev1.ResourceMemory || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
			sum += float64(n / (1 << 30) * weightGiB)
		case name == corev1.ResourcePods || name == corev1.ResourceEphemeralStorage:
		default:
			sum += float64(n * weightOther)
		}
	}
	return sum
}

// hoursBetween returns the requested time in hours. CA up to 1.34 sends start and end. Later versions send Timestamps
// in the fields startField and endField.
func hoursBetween(start, end *metav1.Time, req proto.Message, startField, endField protowire.Number) (float64, error) {
	from, to := timeOf(start, req, startField), timeOf(end, req, endField)
	if from.IsZero() || to.IsZero() || to.Before(from) {
		return 0, status.Error(codes.InvalidArgument, "price: start and end are required, and end must not precede start")
	}
	return to.Sub(from).Hours(), nil
}

func timeOf(first *metav1.Time, req proto.Message, field protowire.Number) time.Time {
	if first != nil {
		return first.Time
	}
	var second timestamppb.Timestamp
	if raw := wire.Field(req, field); raw == nil || proto.Unmarshal(raw, &second) != nil || second.CheckValid() != nil {
		return time.Time{}
	}
	return second.AsTime()
}
