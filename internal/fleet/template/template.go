package template

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// These are the labels and taints that Liqo adds to every virtual node (Liqo
// pkg/virtualKubelet/liqoNodeProvider/setup.go). fleet.DefaultArchitecture is the architecture. The template omits two
// labels, because they differ between the providers of a group: liqo.io/remote-cluster-id and storage.liqo.io/available
// (true only where the provider offers storage classes, reconciler.go).
const (
	liqoTaint       = "virtual-node.liqo.io/not-allowed"
	liqoTypeLabel   = "liqo.io/type"
	liqoTypeVirtual = "virtual-node"

	roleLabel        = "kubernetes.io/role"
	roleAgent        = "agent"
	excludeBalancers = "alpha.service-controller.kubernetes.io/exclude-balancer"
	nodeOS           = "linux"
)

// ProviderLabel returns the key of the label that contains the provider's id on each of the group's nodes.
func ProviderLabel(s fleet.InstanceSpec) string {
	if s.Nodes == fleet.NodesMachine {
		return fleet.LabelMachineProvider
	}
	return fleet.LabelProvider
}

// On returns the group's next node at the offer's provider. It has the provider's id and the offer's labels.
func On(s fleet.InstanceSpec, o fleet.Offer) *corev1.Node {
	node := Of(s)
	node.Labels[ProviderLabel(s)] = o.Provider
	maps.Copy(node.Labels, o.Labels)
	return node
}

// Of returns the next node of the group as CA's simulation needs it: exactly the shape, and all labels and permanent
// taints that every real node of the group will have. CA replaces name and hostname; providerID stays empty. The caller
// may modify the result.
func Of(s fleet.InstanceSpec) *corev1.Node {
	name := "template-" + s.ID
	labels := map[string]string{
		corev1.LabelHostname:   name,
		corev1.LabelOSStable:   nodeOS,
		corev1.LabelArchStable: fleet.DefaultArchitecture,
	}
	var taints []corev1.Taint
	if s.Nodes != fleet.NodesMachine {
		labels[roleLabel], labels[liqoTypeLabel] = roleAgent, liqoTypeVirtual
		labels[corev1.LabelNodeExcludeBalancers], labels[excludeBalancers] = "true", "true"
		taints = append(taints, corev1.Taint{Key: liqoTaint, Value: "true", Effect: corev1.TaintEffectNoExecute})
	}
	maps.Copy(labels, s.NodeLabels()) // the group's own labels take precedence, as in Liqo
	taints = append(taints, s.NodeTaints()...)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec:       corev1.NodeSpec{Taints: taints},
		Status: corev1.NodeStatus{
			Capacity:    s.Shape.DeepCopy(),
			Allocatable: s.Shape.DeepCopy(),
			Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Template", Message: "not a real node"},
			},
			NodeInfo: corev1.NodeSystemInfo{OperatingSystem: nodeOS, Architecture: fleet.DefaultArchitecture},
		},
	}
}
