package fleet

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeKind is what a group's nodes are. Whoever makes them puts labels and taints of its own on each kind.
type NodeKind string

// The kinds. The empty one means NodesVirtual.
const (
	NodesVirtual NodeKind = "virtual" // Liqo's virtual nodes
	NodesMachine NodeKind = "machine" // machines, each registered by its own kubelet
)

// What Liqo puts on every virtual node by itself (Liqo pkg/virtualKubelet/liqoNodeProvider/setup.go). Architecture is
// fixed there too. Left out, because they differ between the providers a group spans: liqo.io/remote-cluster-id and
// storage.liqo.io/available (true only where the provider offers storage classes, reconciler.go).
const (
	liqoTaint       = "virtual-node.liqo.io/not-allowed"
	liqoTypeLabel   = "liqo.io/type"
	liqoTypeVirtual = "virtual-node"
	// LabelProvider is the provider's id, on every virtual node (Liqo pkg/consts/replication.go).
	LabelProvider = "liqo.io/remote-cluster-id"
	// LabelMachineProvider is the provider's id, on every machine.
	LabelMachineProvider = "liqo-autoscaler.io/provider"

	roleLabel        = "kubernetes.io/role"
	roleAgent        = "agent"
	excludeBalancers = "alpha.service-controller.kubernetes.io/exclude-balancer"
	nodeOS           = "linux"
	nodeArch         = "amd64"
)

// ProviderLabel is the label that has the provider's id on each of the group's nodes.
func (s GroupSpec) ProviderLabel() string {
	if s.Nodes == NodesMachine {
		return LabelMachineProvider
	}
	return LabelProvider
}

// NodeOn is the Template of a group for the offer's provider alone: with that provider's id and labels.
func (s GroupSpec) NodeOn(o Offer) *corev1.Node {
	node := s.Template()
	node.Labels[s.ProviderLabel()] = o.Provider
	maps.Copy(node.Labels, o.Labels)
	return node
}

// Template is the next node of the group as CA's simulation needs it: exactly the shape, all labels and permanent
// taints a real node will have, nothing that will differ. CA replaces name and hostname; providerID stays empty. The
// Node is the caller's.
func (s GroupSpec) Template() *corev1.Node {
	name := "template-" + s.ID
	labels := map[string]string{
		corev1.LabelHostname:   name,
		corev1.LabelOSStable:   nodeOS,
		corev1.LabelArchStable: nodeArch,
	}
	var taints []corev1.Taint
	if s.Nodes != NodesMachine {
		labels[roleLabel], labels[liqoTypeLabel] = roleAgent, liqoTypeVirtual
		labels[corev1.LabelNodeExcludeBalancers], labels[excludeBalancers] = "true", "true"
		taints = append(taints, corev1.Taint{Key: liqoTaint, Value: "true", Effect: corev1.TaintEffectNoExecute})
	}
	maps.Copy(labels, s.NodeLabels()) // the group's own win, as in Liqo
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
			NodeInfo: corev1.NodeSystemInfo{OperatingSystem: nodeOS, Architecture: nodeArch},
		},
	}
}
