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

// differs fills in the group's Nodes that are not as its template. Cluster Autoscaler takes a group's shape from a Node
// while one exists, so such a Node keeps away a pod that fits the template and not the Node.
func (g *Group) differs(w World, spec fleet.GroupSpec) {
	var misfit string
	for n := range w.Nodes {
		node := &w.Nodes[n]
		how := differing(node, spec)
		if how == "" {
			continue
		}
		g.Differing = append(g.Differing, "Node "+node.Name+": "+how)
		if all := fit.Misfits(w.Pod, template.Example(node)); len(all) > 0 {
			misfit = cmp.Or(misfit, "Node "+node.Name+" is not as the template, and the pod does not fit on such a node: "+
				all[0].String())
		}
	}
	if w.Nodes == nil && w.Market != nil {
		for _, d := range w.Market.Findings.Nodes {
			if d.Group == spec.ID {
				g.Differing = append(g.Differing, "Node "+d.Node+": "+d.Differs)
			}
		}
	}
	if misfit != "" && g.Reason == NotRequestedYet {
		g.Reason, g.Message = NodesDiffer, misfit+"; Cluster Autoscaler takes the group's shape from an existing Node: undo "+
			"the change, and in place of a taint use `liqo-autoscaler cordon provider ID`"
	}
}

// differing returns the differences between a Ready Node of the group and the group's template.
func differing(node *corev1.Node, spec fleet.GroupSpec) string {
	group, _, ours := fleet.ParseInstanceID(node.Spec.ProviderID)
	_, ready := nodeutil.GetNodeCondition(&node.Status, corev1.NodeReady)
	if !ours || group != spec.ID || ready == nil || ready.Status != corev1.ConditionTrue {
		return ""
	}
	return strings.Join(template.Differs(spec.InstanceSpec, node), "; ")
}
