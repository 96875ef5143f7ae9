package grpcserver

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// The price requests of these tests are for a period of two hours.
var (
	periodBegins = time.Date(2027, 1, 1, 10, 0, 0, 0, time.UTC)
	periodEnds   = periodBegins.Add(2 * time.Hour)
)

func appendTimes(t testing.TB, raw []byte, start, end protowire.Number) []byte {
	t.Helper()
	for number, at := range map[protowire.Number]time.Time{start: periodBegins, end: periodEnds} {
		value, err := proto.Marshal(timestamppb.New(at))
		require.NoError(t, err)
		raw = protowire.AppendBytes(protowire.AppendTag(raw, number, protowire.BytesType), value)
	}
	return raw
}

// nodePrice requests the price in the encodings of CA up to 1.34 and of later versions. The two prices must be equal.
func (c client) nodePrice(group string) (float64, error) {
	c.t.Helper()
	node := &protos.ExternalGrpcNode{Name: "template", Labels: map[string]string{fleet.LabelGroup: group}}
	first, err := c.PricingNodePrice(c.ctx(), &protos.PricingNodePriceRequest{Node: node,
		StartTime: &metav1.Time{Time: periodBegins}, EndTime: &metav1.Time{Time: periodEnds}})
	later := &protos.PricingNodePriceRequest{Node: node}
	later.ProtoReflect().SetUnknown(appendTimes(c.t, nil, 4, 5))
	second, err2 := c.PricingNodePrice(c.ctx(), later)
	require.Equal(c.t, err == nil, err2 == nil)
	require.InDelta(c.t, first.GetPrice(), second.GetPrice(), 1e-12)
	return first.GetPrice(), err
}

func (c client) podPrice(requests corev1.ResourceList) float64 {
	c.t.Helper()
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{
		{Resources: corev1.ResourceRequirements{Requests: requests}}}}}
	first, err := c.PricingPodPrice(c.ctx(), &protos.PricingPodPriceRequest{Pod: pod,
		StartTime: &metav1.Time{Time: periodBegins}, EndTime: &metav1.Time{Time: periodEnds}})
	require.NoError(c.t, err)
	raw, err := pod.Marshal()
	require.NoError(c.t, err)
	later := &protos.PricingPodPriceRequest{}
	later.ProtoReflect().SetUnknown(appendTimes(c.t,
		protowire.AppendBytes(protowire.AppendTag(nil, 4, protowire.BytesType), raw), 5, 6))
	second, err := c.PricingPodPrice(c.ctx(), later)
	require.NoError(c.t, err)
	require.InDelta(c.t, first.GetPrice(), second.GetPrice(), 1e-12)
	return first.GetPrice()
}

func TestNodePricesFollowTheOffers(t *testing.T) {
	f, m := newFake(), &fakeMarket{}
	m.nodes("milan", 2, 0.5)
	m.nodes("turin", 2, 0.2)
	dear, cheap, none := spec("dear", 0, 5), spec("cheap", 0, 5), spec("none", 0, 5)
	dear.Provider, cheap.Provider, none.Provider = "milan", "turin", "nobody"
	c := onMarket(t, f, m, dear, cheap, none, spec("any", 0, 5))

	for group, want := range map[string]float64{
		"dear": 1, "cheap": 0.4, "any": 1, "none": 2 * (4*weightCPU + 8*weightGiB),
	} {
		got, err := c.nodePrice(group)
		require.NoError(t, err)
		require.InDelta(t, want, got, 1e-9, group)
	}
	_, err := c.nodePrice("unknown")
	requireCode(t, codes.NotFound, err)

	whole := c.podPrice(spec("any", 0, 1).Shape)
	require.InDelta(t, min(0.4, 2*(4*weightCPU+8*weightGiB)), whole, 1e-9,
		"a pod as large as the cheapest node costs as much")
	half := corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("4Gi")}
	require.InDelta(t, whole/2, c.podPrice(half), 1e-9)
	require.Zero(t, c.podPrice(nil))
	little := corev1.ResourceList{"cpu": resource.MustParse("500m"), "memory": resource.MustParse("1Gi")}
	require.InDelta(t, whole/8, c.podPrice(little), 1e-9)
	gpu := c.podPrice(corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")})
	require.True(t, gpu > whole && !math.IsInf(gpu, 0))
}

// With CA's expander price and with CA's expander grpc, the price of a group with larger nodes is the offer's price,
// multiplied by the group's factor.
func TestPriceFactorMultipliesTheOffersPrice(t *testing.T) {
	f, m := newFake(), &fakeMarket{}
	m.nodes("milan", 8, 0.5)
	large := spec("large", 0, 5)
	large.Shape, large.PriceFactor = times(4, large.Shape), 3.5
	specs := []fleet.GroupSpec{spec("small", 0, 5), large}
	s, err := New(Options{Groups: f, Specs: specs, Logger: quiet, Market: m.current})
	require.NoError(t, err)
	require.NoError(t, s.Start(t.Context()))
	c := newClient(t, s)
	for group, want := range map[string]float64{"small": 1, "large": 3.5} { // the price of two hours
		got, err := c.nodePrice(group)
		require.NoError(t, err)
		require.InDelta(t, want, got, 1e-9, group)
	}
	cost, _ := s.costOf(s.roster.Load().byID["large"], 2)
	require.InDelta(t, 3.5, cost, 1e-9)
}

// When an offer has prices by resource, a node costs the price of its shape. The group's factor has no effect.
func TestPricesByResource(t *testing.T) {
	f, m := newFake(), &fakeMarket{}
	m.nodes("milan", 8, 0)
	m.set(func() {
		m.Offers[0].Prices = map[corev1.ResourceName]float64{"cpu": 0.05, "memory": 0.01}
	})
	small, large := spec("small", 0, 5), spec("large", 0, 5) // 4 CPUs and 8 GiB cost 0.28 an hour
	large.Shape, large.PriceFactor = times(4, large.Shape), 3.5
	s, err := New(Options{Groups: f, Specs: []fleet.GroupSpec{small, large}, Logger: quiet, Market: m.current})
	require.NoError(t, err)
	require.NoError(t, s.Start(t.Context()))
	c := newClient(t, s)
	for group, want := range map[string]float64{"small": 0.56, "large": 2.24} { // the price of two hours
		got, err := c.nodePrice(group)
		require.NoError(t, err)
		require.InDelta(t, want, got, 1e-9, group)
	}
	require.InDelta(t, 0.56, c.podPrice(small.Shape), 1e-9)
	cost, _ := s.costOf(s.roster.Load().byID["large"], 2)
	require.InDelta(t, 2.24, cost, 1e-9, "what the gRPC expander compares")

	m.nodes("turin", 8, 0.2)
	require.NoError(t, c.refresh())
	cost, _ = s.costOf(s.roster.Load().byID["small"], 1)
	require.InDelta(t, 0.2, cost, 1e-9, "turin is cheaper for a small node")
	cost, _ = s.costOf(s.roster.Load().byID["large"], 1)
	require.InDelta(t, 0.7, cost, 1e-9, "and for a large one")
	dearest, err := c.nodePrice("large")
	require.NoError(t, err)
	require.InDelta(t, 2.24, dearest, 1e-9)
}

// Kubernetes accepts these absurd quantities. The prices of such a pod are finite, and their sum takes little time.
func TestPriceOfAbsurdQuantitiesIsFinite(t *testing.T) {
	c := newClient(t, loaded(t, newFake(), specs("cpu")...))
	container := func(cpu string) corev1.Container {
		return corev1.Container{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}
	}
	for _, huge := range []string{"1e9999", "1e2147483647", "-1e9999"} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{InitContainers: []corev1.Container{container(huge)},
			Containers: []corev1.Container{container(huge), container("1")}}}
		pod.Spec.Overhead = container(huge).Resources.Requests
		pod.Spec.Resources = &corev1.ResourceRequirements{Requests: container(huge).Resources.Requests}
		resp, err := c.PricingPodPrice(c.ctx(), &protos.PricingPodPriceRequest{Pod: pod,
			StartTime: &metav1.Time{Time: periodBegins}, EndTime: &metav1.Time{Time: periodEnds}})
		require.NoError(t, err, huge)
		require.False(t, math.IsInf(resp.GetPrice(), 0) || resp.GetPrice() < 0, "%s: %v", huge, resp.GetPrice())
	}
}

func TestPriceOfAnEmptyRequest(t *testing.T) {
	c := newClient(t, loaded(t, newFake(), specs("cpu")...))
	at := &metav1.Time{Time: periodBegins}
	for _, req := range []*protos.PricingPodPriceRequest{
		{}, {StartTime: at, EndTime: at}, {Pod: &corev1.Pod{}, StartTime: at},
		{Pod: &corev1.Pod{}, EndTime: at},
		{Pod: &corev1.Pod{}, StartTime: at, EndTime: &metav1.Time{Time: periodBegins.Add(-time.Hour)}},
	} {
		_, err := c.PricingPodPrice(c.ctx(), req)
		requireCode(t, codes.InvalidArgument, err)
	}
	broken := &protos.PricingPodPriceRequest{StartTime: at, EndTime: at}
	broken.ProtoReflect().SetUnknown(protowire.AppendBytes(protowire.AppendTag(nil, 4, protowire.BytesType), []byte{0xff}))
	_, err := c.PricingPodPrice(c.ctx(), broken)
	requireCode(t, codes.InvalidArgument, err)
}

// The price of a pod is the weight of its requests, multiplied by a rate. A group whose shape has no weight does not
// change the rate.
func TestWeightlessGroupsDoNotChangePrices(t *testing.T) {
	weightless := spec("pods", 0, 5)
	weightless.Shape = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("110")}
	one := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	for _, groups := range [][]fleet.GroupSpec{{weightless}, {weightless, spec("cpu", 0, 5)}} {
		c := newClient(t, loaded(t, newFake(), groups...))
		require.InDelta(t, 2*weightCPU, c.podPrice(one), 1e-9, "%d groups", len(groups))
	}
}

// Nodes use the cheapest offers first, and cost the prices of these offers. A node that fits on no offer costs as
// much as on the most expensive offer. On an offer without a price, a node costs the weight of its resources.
func TestPriceOfManyNodes(t *testing.T) {
	s := loaded(t, newFake(), spec("cpu", 0, 10))
	g, weight := s.roster.Load().list[0], Weight(spec("cpu", 0, 10).Shape)
	s.figures.Store(&map[string]figure{"cpu": {price: 3, places: []places{
		{nodes: 1, price: 0}, {nodes: 2, price: 1, peered: true}, {nodes: 1, price: 3}}}})
	for n, want := range map[int][2]float64{
		1: {weight, 0}, 2: {weight + 1, 0.5}, 3: {weight + 2, 2. / 3}, 4: {weight + 5, 0.5}, 8: {weight + 17, 0.25},
	} {
		cost, warm := s.costOf(g, n)
		require.InDelta(t, want[0], cost, 1e-9, "%d nodes", n)
		require.InDelta(t, want[1], warm, 1e-9, "%d nodes", n)
	}
}
