package grpcserver

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

func TestInvalidRequestsAreRefused(t *testing.T) {
	f := newFake()
	c := newClient(t, loaded(t, f, spec("cpu", 0, 5), spec("gpu", 0, 5)))
	require.NoError(t, c.increase("cpu", 1))
	own := c.ids("cpu")[0]
	node := func(id string) []*protos.ExternalGrpcNode {
		return []*protos.ExternalGrpcNode{{Name: "n", ProviderID: id}}
	}

	for _, tc := range []struct {
		name string
		want codes.Code
		call func() error
	}{
		{"target size of an unknown group", codes.NotFound, func() error {
			_, err := c.NodeGroupTargetSize(c.ctx(), &protos.NodeGroupTargetSizeRequest{Id: "no"})
			return err
		}},
		{"nodes of an unknown group", codes.NotFound, func() error {
			_, err := c.NodeGroupNodes(c.ctx(), &protos.NodeGroupNodesRequest{})
			return err
		}},
		{"template of an unknown group", codes.NotFound, func() error {
			_, err := c.NodeGroupTemplateNodeInfo(c.ctx(), &protos.NodeGroupTemplateNodeInfoRequest{Id: "no"})
			return err
		}},
		{"increase of an unknown group", codes.NotFound, func() error { return c.increase("no", 1) }},
		{"decrease of an unknown group", codes.NotFound, func() error { return c.decrease("no", -1) }},
		{"delete in an unknown group", codes.NotFound, func() error { return c.remove("no", "liqo://no/no-t0-1") }},
		{"increase by 0", codes.InvalidArgument, func() error { return c.increase("cpu", 0) }},
		{"increase by less", codes.InvalidArgument, func() error { return c.increase("cpu", -1) }},
		{"increase by the most", codes.OutOfRange, func() error { return c.increase("cpu", math.MaxInt32) }},
		{"decrease by 0", codes.InvalidArgument, func() error { return c.decrease("cpu", 0) }},
		{"decrease by more", codes.InvalidArgument, func() error { return c.decrease("cpu", math.MaxInt32) }},
		{"decrease with nothing on its way", codes.FailedPrecondition, func() error { return c.decrease("gpu", -1) }},
		{"delete a foreign node", codes.InvalidArgument,
			func() error { return c.remove("cpu", own, "kind://docker/kind/kind") }},
		{"delete without providerID", codes.InvalidArgument, func() error { return c.remove("cpu", own, "") }},
		{"delete an empty node", codes.InvalidArgument, func() error {
			_, err := c.NodeGroupDeleteNodes(c.ctx(), &protos.NodeGroupDeleteNodesRequest{Id: "cpu",
				Nodes: []*protos.ExternalGrpcNode{{}}})
			return err
		}},
		{"delete an instance under another group", codes.InvalidArgument, func() error {
			_, err := c.NodeGroupDeleteNodes(c.ctx(), &protos.NodeGroupDeleteNodesRequest{Id: "gpu", Nodes: node(own)})
			return err
		}},
		{"options", codes.Unimplemented, func() error {
			_, err := c.NodeGroupGetOptions(c.ctx(), &protos.NodeGroupAutoscalingOptionsRequest{Id: "cpu"})
			return err
		}},
		{"price of a node without times", codes.InvalidArgument, func() error {
			_, err := c.PricingNodePrice(c.ctx(), &protos.PricingNodePriceRequest{})
			return err
		}},
		{"price of a pod without times", codes.InvalidArgument, func() error {
			_, err := c.PricingPodPrice(c.ctx(), &protos.PricingPodPriceRequest{})
			return err
		}},
		{"GPU label", codes.OK, func() error {
			resp, err := c.GPULabel(c.ctx(), &protos.GPULabelRequest{})
			require.Empty(t, resp.GetLabel())
			return err
		}},
		{"GPU types", codes.OK, func() error {
			_, err := c.GetAvailableGPUTypes(c.ctx(), &protos.GetAvailableGPUTypesRequest{})
			return err
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			requireCode(t, tc.want, tc.call())
			require.Equal(t, 1, f.target("cpu"), "nothing changed")
		})
	}
	require.NoError(t, c.decrease("cpu", math.MinInt32), "the largest possible decrease")
	require.Zero(t, c.target("cpu"))
}

func TestNewRefuses(t *testing.T) {
	for name, o := range map[string]Options{
		"no port":    {Specs: []fleet.GroupSpec{spec("a", 0, 1)}},
		"no groups":  {Groups: newFake()},
		"same group": {Groups: newFake(), Specs: []fleet.GroupSpec{spec("a", 0, 1), spec("a", 0, 2)}},
	} {
		_, err := New(o)
		require.ErrorContains(t, err, "make grpc server: ", name)
	}
}

// The server refuses an increase that no group can book, without a call to a group.
func TestInvalidIncreaseCallsNoGroup(t *testing.T) {
	f := newFake()
	d := direct{t, loaded(t, f, spec("cpu", 0, 5))}
	for _, delta := range []int32{0, -1} {
		requireCode(t, codes.InvalidArgument, d.increase(time.Second, delta))
	}
	require.Zero(t, f.called(string(fleet.Grow)))
}
