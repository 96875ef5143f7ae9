package grpcserver

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/template"
)

func TestTemplateHasTheGroupsShapeLabelsAndTaints(t *testing.T) {
	s := spec("gpu", 0, 5)
	s.Shape["nvidia.com/gpu"] = resource.MustParse("1")
	s.Labels = map[string]string{"tier": "burst", corev1.LabelArchStable: "arm64"}
	s.Taints = []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}
	node := template.Of(s.InstanceSpec)

	require.Equal(t, s.Shape, node.Status.Capacity)
	require.Equal(t, s.Shape, node.Status.Allocatable)
	require.Equal(t, []corev1.Taint{
		{Key: "virtual-node.liqo.io/not-allowed", Value: "true", Effect: corev1.TaintEffectNoExecute},
		{Key: "gpu", Effect: corev1.TaintEffectNoSchedule},
	}, node.Spec.Taints)
	require.Equal(t, map[string]string{
		"kubernetes.io/hostname": "template-gpu",
		"kubernetes.io/os":       "linux",
		"kubernetes.io/arch":     "arm64",
		"kubernetes.io/role":     "agent",
		"liqo.io/type":           "virtual-node",
		"type":                   "virtual-node",
		"node.kubernetes.io/exclude-from-external-load-balancers": "true",
		"alpha.service-controller.kubernetes.io/exclude-balancer": "true",
		"liqo-autoscaler.io/group":                                "gpu",
		"tier":                                                    "burst",
	}, node.Labels)
	require.Empty(t, node.Spec.ProviderID)
	require.Equal(t, corev1.ConditionTrue, node.Status.Conditions[0].Status)
	require.Equal(t, backend.LabelGroup, fleet.LabelGroup, "one word for the group label")
}

// The template shares no data with the spec, and the results of two calls for labels and taints share no data.
func TestNodeLabelsAndTaintsAreCopies(t *testing.T) {
	s := spec("cpu", 0, 1)
	s.Labels, s.Taints = map[string]string{"a": "b"}, []corev1.Taint{{Key: "a"}}
	s.NodeLabels()["a"] = "changed"
	s.NodeTaints()[0].Key = "changed"
	require.Equal(t, map[string]string{"a": "b"}, s.Labels)
	require.Equal(t, "a", s.Taints[0].Key)
}

// The wire encoding contains the same bytes of the node twice: in field 1 for CA up to 1.34.1, and in field 2 for CA
// from 1.34.2 on.
func TestTemplateInBothWireGenerations(t *testing.T) {
	s := loaded(t, newFake(), spec("cpu", 0, 5))
	c := newClient(t, s)
	resp, err := c.NodeGroupTemplateNodeInfo(c.ctx(), &protos.NodeGroupTemplateNodeInfoRequest{Id: "cpu"})
	require.NoError(t, err)
	require.Equal(t, "agent", resp.GetNodeInfo().Labels["kubernetes.io/role"], "an old CA reads this")

	wire, err := proto.Marshal(resp)
	require.NoError(t, err)
	fields := map[protowire.Number][]byte{}
	for len(wire) > 0 {
		number, kind, n := protowire.ConsumeTag(wire)
		require.Positive(t, n)
		require.Equal(t, protowire.BytesType, kind)
		wire = wire[n:]
		value, n := protowire.ConsumeBytes(wire)
		require.Positive(t, n)
		wire = wire[n:]
		require.NotContains(t, fields, number)
		fields[number] = value
	}
	require.Len(t, fields, 2)
	want := template.Of(spec("cpu", 0, 5).InstanceSpec)
	for _, number := range []protowire.Number{1, fieldNodeBytes} {
		var node corev1.Node
		require.NoError(t, node.Unmarshal(fields[number]), "field %d", number)
		require.Equal(t, want.Labels, node.Labels)
		require.Equal(t, want.Spec, node.Spec)
		require.Equal(t, want.Status.Conditions, node.Status.Conditions)
		require.Len(t, node.Status.Allocatable, 4)
		for name, quantity := range want.Status.Allocatable {
			require.Zero(t, quantity.Cmp(node.Status.Allocatable[name]), name)
			require.Zero(t, quantity.Cmp(node.Status.Capacity[name]), name)
		}
	}
}

// One response serves all concurrent calls. The race detector would find a call that writes to the response.
func TestTemplateIsSharedSafely(t *testing.T) {
	c := newClient(t, loaded(t, newFake(), spec("cpu", 0, 5)))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				_, err := c.NodeGroupTemplateNodeInfo(c.ctx(), &protos.NodeGroupTemplateNodeInfoRequest{Id: "cpu"})
				requireNoError(t, err)
			}
		})
	}
	wg.Wait()
}
