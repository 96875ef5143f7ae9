package fleet

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// LabelGroup is the label with the group's id on every Node of a group and on every object that we make. CA's price
// expander and operators distinguish groups by it.
const LabelGroup = "liqo-autoscaler.io/group"

// LabelBalance is the only label under our domain that a group may set. With the settings of deploy/ca/values.yaml
// Cluster Autoscaler splits a scale-out between groups with the same value (CA
// processors/nodegroupset/label_nodegroups.go).
const LabelBalance = "liqo-autoscaler.io/balance"

// These labels contain a provider's id.
const (
	// LabelProvider contains the provider's id on every virtual node (Liqo pkg/consts/replication.go).
	LabelProvider = "liqo.io/remote-cluster-id"
	// LabelMachineProvider contains the provider's id on every machine.
	LabelMachineProvider = "liqo-autoscaler.io/provider"
)

// Versions of Liqo after 1.2 set the label type=virtual-kubelet on each virtual node, unless its VirtualNode has
// another value of this label (liqotech/liqo#3325). Cluster Autoscaler 1.36 and later never removes a node with the
// label type=virtual-kubelet.
const (
	// LabelType is the key of that label. Workloads use it to avoid virtual nodes.
	LabelType = "type"
	// TypeVirtualNode is the value that we set, unless the group's labels contain another value.
	TypeVirtualNode = "virtual-node"
)

// NodeLabels returns the labels that we set on every Node of the group: the labels of the spec, LabelGroup and, on
// virtual nodes, LabelType. The result does not include labels that the backend adds. The caller may change the map.
func (s InstanceSpec) NodeLabels() map[string]string {
	out := map[string]string{}
	if s.Nodes != NodesMachine {
		out[LabelType] = TypeVirtualNode
	}
	maps.Copy(out, s.Labels)
	out[LabelGroup] = s.ID
	return out
}

// NodeTaints returns the taints that we set on every Node of the group: the taints of the spec in its order, then the
// taint of GroupTaint. The result does not include taints that the backend adds. The caller may change the slice.
func (s InstanceSpec) NodeTaints() []corev1.Taint {
	out := slices.Clone(s.Taints)
	if s.GroupTaint != "" {
		out = append(out, corev1.Taint{Key: LabelGroup, Value: s.ID, Effect: s.GroupTaint})
	}
	return out
}
