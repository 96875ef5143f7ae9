package template_test

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/template"
)

// nextLiqo returns the labels of a Node that the virtual kubelet of Liqo's main branch creates for a VirtualNode. They
// are the virtual kubelet's own labels, such as type=virtual-kubelet, overridden by the labels of the VirtualNode
// (liqoNodeProvider/setup.go, hydrate).
func nextLiqo(s fleet.InstanceSpec, node, provider string) map[string]string {
	labels := map[string]string{
		"kubernetes.io/hostname": node, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
		"kubernetes.io/role": "agent", "liqo.io/type": "virtual-node", "type": "virtual-kubelet",
		"liqo.io/remote-cluster-id": provider, "storage.liqo.io/available": "false",
		"node.kubernetes.io/exclude-from-external-load-balancers": "true",
		"alpha.service-controller.kubernetes.io/exclude-balancer": "true",
	}
	maps.Copy(labels, s.NodeLabels())
	return labels
}

// A Node of the next Liqo has the labels of the template. It lacks the label that would keep Cluster Autoscaler 1.36
// from removing it. When a person sets this label on a Node, the Node is reported.
func TestNodeOfTheNextLiqoHasTheTemplatesType(t *testing.T) {
	for _, own := range []map[string]string{nil, {fleet.LabelType: "gpu"}} {
		spec := fleet.InstanceSpec{ID: "standard", Labels: own}
		node := template.Of(spec)
		node.Labels = nextLiqo(spec, "lca-standard-1", "milan")
		require.Empty(t, template.Differs(spec, node))
		require.NotEqual(t, "virtual-kubelet", node.Labels[fleet.LabelType])
		want := node.Labels[fleet.LabelType]
		node.Labels[fleet.LabelType] = "virtual-kubelet"
		require.Equal(t, []string{"label type is virtual-kubelet instead of " + want}, template.Differs(spec, node))
		delete(node.Labels, fleet.LabelType)
		if own == nil {
			require.Empty(t, template.Differs(spec, node), "a Node from before this label")
		} else {
			require.Equal(t, []string{"label type=gpu is missing"}, template.Differs(spec, node))
		}
	}
}

// A machine runs its own kubelet, which does not set the label type.
func TestMachineHasNoType(t *testing.T) {
	require.NotContains(t, template.Of(fleet.InstanceSpec{ID: "a", Nodes: fleet.NodesMachine}).Labels, fleet.LabelType)
}
