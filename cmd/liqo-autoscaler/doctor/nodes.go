package doctor

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
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
		spec, ok := specs[groupOf(node)]
		if !ok || !isReady(node) {
			continue
		}
		compared++
		if d := differences(in.Template(spec), node); d != "" {
			r.add("node-differs", "Node "+node.Name, "it is not what Cluster Autoscaler was told of group %s: %s", spec.ID, d)
		}
	}
	r.examined("%d virtual nodes against their templates", compared)
}

// groupOf is the group in a Node's id (liqo://group/instance).
func groupOf(node *corev1.Node) string {
	group, _, _ := strings.Cut(strings.TrimPrefix(node.Spec.ProviderID, "liqo://"), "/")
	return group
}

func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// differences are those that Cluster Autoscaler's simulation would stumble over. Labels that only the Node has do not
// matter to it.
func differences(template, node *corev1.Node) string {
	var found []string
	for _, key := range slices.Sorted(maps.Keys(template.Labels)) {
		if got := node.Labels[key]; key != corev1.LabelHostname && got != template.Labels[key] {
			found = append(found, "label "+key+" is "+got+" instead of "+template.Labels[key])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(template.Status.Allocatable)) {
		want, got := template.Status.Allocatable[name], node.Status.Allocatable[name]
		if got.Cmp(want) != 0 {
			found = append(found, string(name)+" is "+got.String()+" instead of "+want.String())
		}
	}
	for _, taint := range template.Spec.Taints {
		if !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) }) {
			found = append(found, "taint "+taint.ToString()+" is missing")
		}
	}
	return strings.Join(found, "; ")
}
