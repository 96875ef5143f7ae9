package explain

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	nodeutil "k8s.io/component-helpers/node/util"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fit"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/template"
)

// differing returns the Nodes of a group that differ from its template. While a group has Nodes, Cluster Autoscaler
// takes the shape of a new node from one of these Nodes, and not from the template. If the pod does not fit on this
// Node, it gets no new node, even if it fits the template. The result misfit describes the first of the returned
// Nodes on which the pod does not fit, or is "".
func (w World) differing(spec fleet.GroupSpec) (nodes []string, misfit string) {
	for n := range w.Nodes {
		node := &w.Nodes[n]
		how := differs(node, spec)
		if how == "" {
			continue
		}
		nodes = append(nodes, "Node "+node.Name+": "+how)
		if all := fit.Misfits(w.Pod, template.Example(node)); len(all) > 0 {
			misfit = cmp.Or(misfit, "Node "+node.Name+" differs from the template, and the pod does not fit on such a node: "+
				all[0].String())
		}
	}
	if w.Nodes == nil && w.Market != nil {
		for _, d := range w.Market.Findings.Nodes {
			if d.Group == spec.ID {
				nodes = append(nodes, "Node "+d.Node+": "+d.Differs)
			}
		}
	}
	return nodes, misfit
}

// differs describes the differences between a Ready Node of the group and the group's template. It returns "" if the
// Node and the template are equal. It also returns "" for a Node that is not Ready or belongs to another group.
func differs(node *corev1.Node, spec fleet.GroupSpec) string {
	group, _, ours := fleet.ParseInstanceID(node.Spec.ProviderID)
	_, ready := nodeutil.GetNodeCondition(&node.Status, corev1.NodeReady)
	if !ours || group != spec.ID || ready == nil || ready.Status != corev1.ConditionTrue {
		return ""
	}
	return strings.Join(template.Differs(spec.InstanceSpec, node), "; ")
}
