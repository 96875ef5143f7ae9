package doctor

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/template"
)

// nodes compares each Ready Node with what Cluster Autoscaler was told of its group.
func (r *Report) nodes(in Installation, c *cluster) {
	if in.Temporal == nil || len(c.nodes) == 0 {
		return
	}
	specs := map[string]fleet.GroupSpec{}
	for _, g := range in.Temporal.Groups {
		if g.Spec != nil {
			specs[g.Group] = *g.Spec
		}
	}
	compared := 0
	for n := range c.nodes {
		node := &c.nodes[n]
		group, _, ours := fleet.ParseInstanceID(node.Spec.ProviderID)
		spec, known := specs[group]
		if !ours || !known || !isReady(node) {
			continue
		}
		compared++
		if d := template.Differs(spec, node); len(d) > 0 {
			r.add("node-differs", "Node "+node.Name, "it is not what Cluster Autoscaler was told of group %s: %s", spec.ID,
				strings.Join(d, "; "))
		}
	}
	r.examined("%d virtual nodes against their templates", compared)
}

func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
