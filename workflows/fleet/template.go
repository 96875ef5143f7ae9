package fleet

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

	roleLabel        = "kubernetes.io/role"
	roleAgent        = "agent"
	excludeBalancers = "alpha.service-controller.kubernetes.io/exclude-balancer"
	nodeOS           = "linux"
	nodeArch         = "amd64"
)

// NodeOn is the Template of a group for the offer's provider alone: with that provider's id and labels.
func (s GroupSpec) NodeOn(o Offer) *corev1.Node {
	node := s.Template()
	node.Labels[LabelProvider] = o.Provider
	maps.Copy(node.Labels, o.Labels)
	return node
}

// Template is the next node of the group as CA's simulation needs it: exactly the shape, all labels and permanent
// taints a real node will have, nothing that will differ. CA replaces name and hostname; providerID stays empty. The
// Node is the caller's.
func (s GroupSpec) Template() *corev1.Node {
	name := "template-" + s.ID
	labels := map[string]string{
		corev1.LabelHostname:             name,
		corev1.LabelOSStable:             nodeOS,
		corev1.LabelArchStable:           nodeArch,
		roleLabel:                        roleAgent,
		liqoTypeLabel:                    liqoTypeVirtual,
		corev1.LabelNodeExcludeBalancers: "true",
		excludeBalancers:                 "true",
	}
	maps.Copy(labels, s.NodeLabels()) // as in Liqo, the virtual node's own labels win
	taints := append([]corev1.Taint{{Key: liqoTaint, Value: "true", Effect: corev1.TaintEffectNoExecute}},
		s.NodeTaints()...)
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
