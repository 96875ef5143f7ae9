package doctor

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	nodeutil "k8s.io/component-helpers/node/util"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/template"
)

// otherHubs reports the Nodes of hubs for which no worker runs in this cluster, for example after the hub was
// renamed. No process removes these Nodes, so they continue to cost money.
func (r *Report) otherHubs(c *cluster) {
	if !c.deployments || len(c.workers) == 0 { // workers may run outside of the cluster
		return
	}
	served, nodes := map[string]bool{}, map[string]int{}
	for _, p := range c.workers {
		hub, _ := p.flag("hub")
		served[cmp.Or(hub, fleet.DefaultHub)] = true
	}
	for _, node := range c.nodes {
		if hub := node.Annotations[backend.LabelHub]; hub != "" && !served[hub] {
			nodes[hub]++
		}
	}
	for _, hub := range slices.Sorted(maps.Keys(nodes)) {
		r.add("hub-without-worker", "hub "+hub, "%d virtual nodes belong to it, but no worker of this hub runs in this "+
			"cluster",
			nodes[hub])
	}
}

// nodes compares each Ready Node with the template that Cluster Autoscaler received for the Node's group.
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
		_, ready := nodeutil.GetNodeCondition(&node.Status, corev1.NodeReady)
		if !ours || !known || ready == nil || ready.Status != corev1.ConditionTrue {
			continue
		}
		compared++
		if d := template.Differs(spec.InstanceSpec, node); len(d) > 0 {
			r.add("node-differs", "Node "+node.Name, "it differs from the template of group %s that Cluster Autoscaler "+
				"received: %s", spec.ID,
				strings.Join(d, "; "))
		}
	}
	r.examined("%d virtual nodes against their templates", compared)
}
