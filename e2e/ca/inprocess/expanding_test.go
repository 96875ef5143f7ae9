//go:build externalgrpc

package inprocess

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider"
	testprovider "k8s.io/autoscaler/cluster-autoscaler/cloudprovider/test"
	caconfig "k8s.io/autoscaler/cluster-autoscaler/config"
	"k8s.io/autoscaler/cluster-autoscaler/expander"
	"k8s.io/autoscaler/cluster-autoscaler/expander/grpcplugin"
	"k8s.io/autoscaler/cluster-autoscaler/simulator/framework"
)

func byGRPC(o *caconfig.AutoscalingOptions) { o.ExpanderNames = "grpc,least-waste" }

func TestGRPCExpanderTakesTheCheapest(t *testing.T) {
	w := newWorld(t, "- {id: burst, per: provider}", offers(offer("milan", "north", 2, 0.3),
		offer("rome", "centre", 2, 0.1), offer("turin", "south", 2, 0.2)), byGRPC)
	for n, group := range []string{"burst-rome", "burst-turin", "burst-milan"} {
		w.pods(group, 2)
		require.Equal(t, []string{group + " +2"}, w.loops(3), "round %d", n)
	}
	require.Zero(t, w.pending())
}

// If several providers are equally cheap, the provider with a peering serves the next pod. CA's least-waste expander
// cannot distinguish these providers.
func TestGRPCExpanderPrefersAnExistingPeering(t *testing.T) {
	w := newWorld(t, "- {id: burst, per: provider}", offers(offer("milan", "north", 4, 0.2),
		offer("rome", "centre", 4, 0.1), offer("turin", "south", 4, 0.2)), byGRPC)
	w.pods("first", 4)
	require.Equal(t, []string{"burst-rome +4"}, w.loops(3))
	w.pods("second", 1)
	second := w.loops(3)
	require.Len(t, second, 1)
	for _, next := range []string{"third", "fourth", "fifth"} {
		w.pods(next, 1)
		require.Equal(t, second, w.loops(3), next)
	}
	require.Zero(t, w.pending())
}

// The test uses CA's own client of the expander, without a certificate. When the server does not answer, the client
// keeps every option.
func TestGRPCExpanderKeepsAllOptionsWithoutAnAnswer(t *testing.T) {
	w := newWorld(t, "- {id: burst, per: provider}", offers(offer("milan", "north", 2, 0.3),
		offer("rome", "centre", 2, 0.1)), byGRPC)
	client := grpcplugin.NewFilter(w.options.GRPCExpanderCert, w.options.GRPCExpanderURL)
	fits := []*corev1.Pod{newPod("web", "1", w.now())}
	options, nodes := []expander.Option{}, map[string]*framework.NodeInfo{}
	for _, id := range []string{"burst-milan", "burst-rome", "elsewhere"} {
		options = append(options, expander.Option{NodeGroup: groupOf(id), NodeCount: 1, Pods: fits})
		nodes[id] = framework.NewNodeInfo(machine(id, "2", w.now()), nil)
	}
	names := func(options []expander.Option) (names []string) {
		for _, o := range options {
			names = append(names, o.NodeGroup.Id())
		}
		return names
	}
	require.ElementsMatch(t, []string{"burst-rome", "elsewhere"}, names(client.BestOptions(options, nodes)))
	require.Equal(t, []string{"burst-rome"}, names(client.BestOptions(options[:2], nodes)))
	require.Equal(t, []string{"elsewhere"}, names(client.BestOptions(options[2:], nodes)))

	broken := []expander.Option{{NodeGroup: groupOf("burst-milan")}, {NodeGroup: groupOf("burst-rome")}}
	require.Len(t, client.BestOptions(broken, nodes), 2, "without a node count")
	gone := grpcplugin.NewFilter(filepath.Clean(w.options.GRPCExpanderCert), "127.0.0.1:1")
	require.Len(t, gone.BestOptions(options, nodes), 3)
}

func groupOf(id string) cloudprovider.NodeGroup {
	return testprovider.NewTestNodeGroup(id, 10, 0, 0, true, false, "", nil, nil)
}
