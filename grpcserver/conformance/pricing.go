package conformance

import (
	"context"
	"math"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wire"
)

// agree fails the check if two prices differ: the price that CA up to 1.34 receives (first), and the price that later
// versions receive (second). It returns the text for a check that passes.
func agree(first, second float64, err1, err2 error) string {
	switch {
	case unimplemented(err1) && unimplemented(err2):
		return "Unimplemented: with --expander=price CA does not scale out"
	case err1 != nil || err2 != nil:
		fail("CA up to 1.34: %v, later: %v", err1, err2)
	case math.IsNaN(first+second) || math.IsInf(first, 0) || math.IsInf(second, 0) || first < 0 || second < 0:
		fail("the price is %g and, for CA from 1.35 on, %g", first, second)
	case math.Abs(first-second) > 1e-6*max(first, second):
		fail("the price is %g, and for CA from 1.35 on %g", first, second)
	}
	return ""
}

// hour returns a time range of one hour in two encodings: start and end for CA up to 1.34, times for later versions.
func hour() (start, end *metav1.Time, times [2][]byte) {
	from := time.Now().Truncate(time.Second)
	to := from.Add(time.Hour)
	for i, at := range []time.Time{from, to} {
		var err error
		times[i], err = proto.Marshal(timestamppb.New(at))
		skipOn(err)
	}
	return &metav1.Time{Time: from}, &metav1.Time{Time: to}, times
}

func nodePrice(ctx context.Context, p *provider) {
	start, end, times := hour()
	last := ""
	p.eachTemplate(ctx, func(n *corev1.Node) {
		node := &protos.ExternalGrpcNode{Name: "template-node-1", Labels: n.Labels, Annotations: n.Annotations}
		later := &protos.PricingNodePriceRequest{Node: node}
		wire.Append(later, 4, times[0])
		wire.Append(later, 5, times[1])
		first, err1 := call(ctx, p, "PricingNodePrice", p.client.PricingNodePrice,
			&protos.PricingNodePriceRequest{Node: node, StartTime: start, EndTime: end})
		second, err2 := call(ctx, p, "PricingNodePrice", p.client.PricingNodePrice, later)
		last = agree(first.GetPrice(), second.GetPrice(), err1, err2)
	})
	if last != "" {
		p.setText("%s", last)
	}
}

func podPrice(ctx context.Context, p *provider) {
	start, end, times := hour()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "conformance"}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("500Mi")}}}}}}
	raw, err := pod.Marshal()
	skipOn(err)
	later := &protos.PricingPodPriceRequest{}
	wire.Append(later, 4, raw)
	wire.Append(later, 5, times[0])
	wire.Append(later, 6, times[1])
	first, err1 := call(ctx, p, "PricingPodPrice", p.client.PricingPodPrice,
		&protos.PricingPodPriceRequest{Pod: pod, StartTime: start, EndTime: end})
	second, err2 := call(ctx, p, "PricingPodPrice", p.client.PricingPodPrice, later)
	p.setText("%s", agree(first.GetPrice(), second.GetPrice(), err1, err2))
}
