package explain_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/explain"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/template"
)

// ready returns a Ready Node that equals the template of the group std, but also has these taints.
func ready(w explain.World, taints ...corev1.Taint) corev1.Node {
	node := template.Of(w.Groups[0].Spec.InstanceSpec)
	node.Name, node.Spec.ProviderID = "lca-std-a-1-1", "liqo://std/std-a-1"
	node.Spec.Taints = append(node.Spec.Taints, taints...)
	return *node
}

// A person has tainted a virtual node. Cluster Autoscaler takes the shape of the group from this Node, so the group
// stops growing. explain shows the taint as the reason.
func TestTaintSetByAPersonIsExplained(t *testing.T) {
	tainted := corev1.Taint{Key: "maintenance", Value: "true", Effect: corev1.TaintEffectNoSchedule}
	passing := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	w := world()
	w.Nodes = []corev1.Node{ready(w, tainted, passing)}
	p := explain.OfPod(w)
	require.Equal(t, explain.NodesDiffer, p.Reason)
	require.Contains(t, p.Message, "node group std: Node lca-std-a-1-1 differs from the template, and the pod does not "+
		"fit on such a node: spec.tolerations: no toleration for the taint maintenance=true:NoSchedule; Cluster Autoscaler "+
		"takes the group's shape from an existing Node: undo the change, and in place of a taint use")
	var text bytes.Buffer
	require.NoError(t, p.Text(&text))
	require.Contains(t, text.String(), "  differs: Node lca-std-a-1-1: taint maintenance=true:NoSchedule is not in the "+
		"template\n")

	w.Pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	p = explain.OfPod(w)
	require.Equal(t, explain.NotRequestedYet, p.Reason)
	require.Len(t, p.Groups[0].Differing, 1)

	w = world()
	w.Nodes = []corev1.Node{ready(w, passing)}
	w.Nodes[0].Labels["kubernetes.io/os"] = "other"
	p = explain.OfPod(w)
	require.Equal(t, explain.NotRequestedYet, p.Reason, "Cluster Autoscaler ignores the taint of a cordon")
	require.Len(t, p.Groups[0].Differing, 1)

	w.Nodes = []corev1.Node{ready(w, passing)}
	require.Empty(t, explain.OfPod(w).Groups[0].Differing, "a cordoned Node is alike")
	other, broken := ready(w, tainted), ready(w, tainted)
	other.Spec.ProviderID, broken.Status.Conditions[0].Status = "liqo://gpu/gpu-a-1", corev1.ConditionUnknown
	w.Nodes = []corev1.Node{other, broken}
	require.Empty(t, explain.OfPod(w).Groups[0].Differing)
}

// The user has no access to the Nodes. The page then shows the differing Nodes that the worker has found.
func TestDifferencesFoundByTheWorkerAreShown(t *testing.T) {
	w := world()
	w.Market.Findings.Nodes = []market.DifferentNode{{Node: "n", Group: "std", Differs: "cpu is 1 instead of 2"},
		{Node: "m", Group: "gpu", Differs: "x"}}
	p := explain.OfPod(w)
	require.Equal(t, []string{"Node n: cpu is 1 instead of 2"}, p.Groups[0].Differing)
	require.Equal(t, explain.NotRequestedYet, p.Reason)
}
