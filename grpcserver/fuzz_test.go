package grpcserver

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"
	expanderprotos "k8s.io/autoscaler/cluster-autoscaler/expander/grpcplugin/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/template"
)

var errUnreadable = errors.New("unreadable")

// requests returns one request for each RPC of CA, in the encodings of CA up to 1.34 and of later versions where
// these differ.
func requests(f *testing.F) map[string][]proto.Message {
	node := &protos.ExternalGrpcNode{Name: "n", ProviderID: "liqo://cpu/cpu-t0-1",
		Labels: map[string]string{fleet.LabelGroup: "cpu"}}
	at := &metav1.Time{Time: periodBegins}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{
		{Resources: corev1.ResourceRequirements{Requests: spec("cpu", 0, 1).Shape}}}}}
	raw, err := pod.Marshal()
	require.NoError(f, err)
	laterNode := &protos.PricingNodePriceRequest{Node: node}
	laterNode.ProtoReflect().SetUnknown(appendTimes(f, nil, 4, 5))
	laterPod := &protos.PricingPodPriceRequest{}
	laterPod.ProtoReflect().SetUnknown(appendTimes(f,
		protowire.AppendBytes(protowire.AppendTag(nil, 4, protowire.BytesType), raw), 5, 6))
	laterOptions := &protos.NodeGroupAutoscalingOptions{}
	laterOptions.ProtoReflect().SetUnknown(protowire.AppendBytes(
		protowire.AppendTag(nil, fieldProvisionTime, protowire.BytesType), []byte{8, 0x84, 7}))
	return map[string][]proto.Message{
		"NodeGroupForNode":            {&protos.NodeGroupForNodeRequest{Node: node}},
		"NodeGroupTargetSize":         {&protos.NodeGroupTargetSizeRequest{Id: "cpu"}},
		"NodeGroupIncreaseSize":       {&protos.NodeGroupIncreaseSizeRequest{Id: "cpu", Delta: 2}},
		"NodeGroupDecreaseTargetSize": {&protos.NodeGroupDecreaseTargetSizeRequest{Id: "cpu", Delta: -1}},
		"NodeGroupDeleteNodes": {&protos.NodeGroupDeleteNodesRequest{Id: "cpu",
			Nodes: []*protos.ExternalGrpcNode{node, nil}}},
		"NodeGroupNodes":            {&protos.NodeGroupNodesRequest{Id: "cpu"}},
		"NodeGroupTemplateNodeInfo": {&protos.NodeGroupTemplateNodeInfoRequest{Id: "cpu"}},
		"NodeGroupGetOptions": {
			&protos.NodeGroupAutoscalingOptionsRequest{Id: "cpu", Defaults: &protos.NodeGroupAutoscalingOptions{
				MaxNodeProvisionTime: &metav1.Duration{Duration: 900e9}}},
			&protos.NodeGroupAutoscalingOptionsRequest{Id: "cpu", Defaults: laterOptions}},
		"PricingNodePrice": {&protos.PricingNodePriceRequest{Node: node, StartTime: at, EndTime: at}, laterNode},
		"PricingPodPrice":  {&protos.PricingPodPriceRequest{Pod: pod, StartTime: at, EndTime: at}, laterPod},
	}
}

// No call panics for any bytes, in the encoding of any version of CA. A failed call has a code for an error of the
// caller.
func FuzzCalls(f *testing.F) {
	methods := protos.CloudProvider_ServiceDesc.Methods
	seeds := requests(f)
	for n, m := range methods {
		f.Add(uint8(n), []byte(nil))
		for _, message := range seeds[m.MethodName] {
			raw, err := proto.Marshal(message)
			require.NoError(f, err)
			f.Add(uint8(n), raw)
		}
	}
	allowed := []codes.Code{codes.OK, codes.InvalidArgument, codes.NotFound, codes.OutOfRange, codes.FailedPrecondition,
		codes.Unimplemented}
	f.Fuzz(func(t *testing.T, n uint8, raw []byte) {
		groups := newFake()
		s := loaded(t, groups, spec("cpu", 0, 5), spec("gpu", 0, 5))
		for _, group := range []string{"cpu", "gpu"} {
			_, err := s.NodeGroupIncreaseSize(t.Context(), &protos.NodeGroupIncreaseSizeRequest{Id: group, Delta: 2})
			require.NoError(t, err)
		}
		groups.ready("cpu", 1)
		method := methods[int(n)%len(methods)]
		resp, err := method.Handler(s, t.Context(), func(in any) error {
			if proto.Unmarshal(raw, in.(proto.Message)) != nil { // gRPC refuses it
				return errUnreadable
			}
			return nil
		}, nil)
		if errors.Is(err, errUnreadable) {
			return
		}
		require.Contains(t, allowed, status.Code(err), "%s: %v", method.MethodName, err)
		if p, ok := resp.(interface{ GetPrice() float64 }); ok && err == nil {
			require.False(t, math.IsNaN(p.GetPrice()) || math.IsInf(p.GetPrice(), 0), method.MethodName)
		}
		require.LessOrEqual(t, groups.target("cpu"), 5)
		require.GreaterOrEqual(t, groups.target("cpu")+groups.target("gpu"), 2, "one call, one group")
	})
}

// The expander returns at least one of the options of its request, because without an option CA would not scale out.
func FuzzExpander(f *testing.F) {
	for _, options := range [][]*expanderprotos.Option{
		nil, {optionOf(f, "cpu", 1, false, "1")}, {optionOf(f, "cpu", 2, true, "1", "2"), optionOf(f, "other", 1, true)},
		{optionOf(f, "cpu", 1, false, "-1"), optionOf(f, "gpu", 3, true, "0")}, {optionOf(f, "cpu", -1, false)},
		{optionOf(f, "cpu", 1, true, "1e2147483647", "1"), optionOf(f, "gpu", 1, false, "-1e9999")},
	} {
		raw, err := proto.Marshal(&expanderprotos.BestOptionsRequest{Options: options,
			NodeMap: map[string]*corev1.Node{"cpu": template.Of(spec("cpu", 0, 5).InstanceSpec)}})
		require.NoError(f, err)
		f.Add(raw)
	}
	m := &fakeMarket{}
	m.nodes("milan", 2, 0.5)
	s, err := New(Options{Groups: newFake(), Specs: specs("cpu", "gpu"), Logger: quiet, Market: m.current})
	require.NoError(f, err)
	require.NoError(f, s.Start(f.Context()))
	f.Fuzz(func(t *testing.T, raw []byte) {
		req := &options{}
		req.read(raw)
		resp, err := expander{server: s}.BestOptions(t.Context(), req)
		if err != nil {
			require.Equal(t, codes.InvalidArgument, status.Code(err), "%v", err)
			return
		}
		require.Equal(t, len(req.all) == 0, len(resp.GetOptions()) == 0)
		for _, o := range resp.GetOptions() {
			require.True(t, slices.ContainsFunc(req.all, func(asked option) bool { return asked.group == o.GetNodeGroupId() }))
		}
	})
}
