package config

import "strings"

// about describes each field, by its path in the schema.
var about = withDefaultsToo(map[string]string{
	"": "The node groups that Cluster Autoscaler may grow.",
	"hub": "Name of this installation, the same as the worker's --hub. All objects carry it as a label; unless it " +
		"is the default, workflow ids and task queues contain it. Installations that share a Temporal namespace need " +
		"different names. Do not change it while nodes exist: the new hub does not know them. Default: default.",
	"defaults": "Defaults for all groups. `shape`, `labels` and `budgets` are merged key by key; other fields are " +
		"replaced as a whole.",
	"limits": "Limits of all groups together, compared with the sum of the shapes of all counted instances. An increase " +
		"that would exceed a limit is refused.",
	"limits.nodes":  "The maximum number of instances that count.",
	"limits.cpu":    "The maximum CPU, as a quantity.",
	"limits.memory": "The maximum memory, as a quantity.",
	"nodeGroups":    "Classes of nodes that Cluster Autoscaler may request.",
	"nodeGroups.*":  "One class of nodes, all of the same size.",
	"nodeGroups.*.id": "The group's name, for Cluster Autoscaler and in the names of nodes. Do not change the id, and " +
		"not the shape, labels or taints of an existing id. It has at most 24 characters, because the names of " +
		"ResourceSlices contain it, and Liqo accepts at most 50 characters there.",
	"nodeGroups.*.min": "The minimum for Cluster Autoscaler, which enforces it only with " +
		"--enforce-node-group-min-size.",
	"nodeGroups.*.max": "The maximum number of instances that count. With `per` or `sizes` it applies to each " +
		"resulting group.",
	"nodeGroups.*.shape":   "Capacity and allocatable of each node: at least cpu, memory and pods.",
	"nodeGroups.*.shape.*": "A quantity, such as 4, 500m or 8Gi.",
	"nodeGroups.*.sizes": "Replaces `shape` by several shapes. Each size becomes a group `<id>-<name>`. With `per`, " +
		"each pair of a size and a provider or label value becomes a group `<id>-<name>-<place>`. `max` and `minPerGroup` " +
		"apply to each group.",
	"nodeGroups.*.sizes.*":      "A shape of nodes.",
	"nodeGroups.*.sizes.*.name": "The size's name, part of its groups' ids. It must not change.",
	"nodeGroups.*.sizes.*.shape": "Capacity and allocatable of each node of this size; missing keys come from the " +
		"defaults.",
	"nodeGroups.*.sizes.*.shape.*": "A quantity, such as 4, 500m or 8Gi.",
	"nodeGroups.*.sizes.*.priceFactor": "An offer's price per node is multiplied by this factor for nodes of this " +
		"size. The default is 1 " +
		"for the first size. For every other size it is in proportion to its shape, with weights of 0.03 per CPU, 0.004 " +
		"per GiB and 1 per GPU. It does not apply to an offer's prices by resource.",
	"nodeGroups.*.priceFactor": "An offer's price per node is multiplied by this factor for nodes of the group. " +
		"Default: 1. It does not " +
		"apply to an offer's prices by resource, which already follow the shape.",
	"nodeGroups.*.currency": "The currency of all prices, an ISO 4217 code. All groups must have the same currency, so " +
		"set it in the defaults. Offers in another currency are not used. Default: USD.",
	"nodeGroups.*.nodes": "The kind of the nodes: `virtual` (the default) for Liqo's virtual nodes, or `machine` for " +
		"microVMs, if the workers run with --backend microvm. All groups of an installation have the same kind.",
	"nodeGroups.*.labels":          "Labels of every node of the group.",
	"nodeGroups.*.labels.*":        "A label value.",
	"nodeGroups.*.taints":          "Taints of every node of the group. Virtual nodes also have Liqo's own taint.",
	"nodeGroups.*.taints.*":        "A taint.",
	"nodeGroups.*.taints.*.key":    "The taint's key.",
	"nodeGroups.*.taints.*.value":  "The taint's value.",
	"nodeGroups.*.taints.*.effect": "The effect of the taint on pods that do not tolerate it.",
	"nodeGroups.*.groupTaint": "Effect of an additional taint, liqo-autoscaler.io/group=<id>, which keeps away pods " +
		"that do not tolerate it. Empty: no such taint.",
	"nodeGroups.*.provider": "The only provider of the group, by its Liqo cluster id.",
	"nodeGroups.*.per": "`any` (the default): one group over all providers that match. `provider`: one group for each " +
		"matching provider. `label:<key>`: one group for each value of this label in the offers.",
	"nodeGroups.*.minPerGroup": "The minimum of each group that `per` or `sizes` create.",
	"nodeGroups.*.selector": "Which offers may serve the group, by their labels. " +
		"Default: all.",
	"nodeGroups.*.volumes": "`keep` (the default): while a provider holds volumes of this cluster, one of its nodes stays, " +
		"because Liqo deletes the volumes with the provider's last node. `delete`: the group's nodes do not stay for " +
		"volumes.",
	"nodeGroups.*.standby": "The number of providers with which the group keeps a peering although it has no node " +
		"there. The first node on such a provider needs only a slice. Default: 0.",
	"nodeGroups.*.selection": "The weights for the choice among the offers that fit. Each property of an " +
		"offer, such as its price, gives a part between 0 and 1, which is multiplied by the property's weight. The offer " +
		"with the highest sum is chosen. Without weights the price " +
		"alone decides.",
	"nodeGroups.*.selection.price": "Weight of a low price. The part is the lowest price of all offers that fit, " +
		"divided by the price of the offer.",
	"nodeGroups.*.selection.warm": "Weight of an existing peering. The part is 1 if a peering with the provider " +
		"exists, and otherwise 0.",
	"nodeGroups.*.selection.latency": "Weight of a low latency. The part is 1 at 0 ms, 0.5 at 50 ms, and 0 for an offer " +
		"without `latencyMilliseconds`.",
	"nodeGroups.*.selection.spread": "Weight of a provider with few nodes of the group. The part is 1 without a node, " +
		"1/2 with one node, 1/3 with two nodes.",
	"nodeGroups.*.selection.pack": "Weight of a provider with many nodes of the group. The part is 0 without a node, " +
		"1/2 with one node, 2/3 with two nodes.",
	"nodeGroups.*.selection.failures": "Weight of a provider with few failures in this group. The part is 1 without a " +
		"failure, and 1/2 right after a failure. The effect of a failure halves every 30 minutes.",
	"nodeGroups.*.spending": "Limits of the costs of the group's nodes, in the group's currency. They apply separately " +
		"to each group that `per` or `sizes` create. No limit removes a running node. A node whose offer has no price " +
		"counts as free.",
	"nodeGroups.*.spending.account": "The account to which the group's costs belong. Groups may share an account. Their " +
		"limits then apply to the sum of the costs of all groups of the account. If a new group replaces an old " +
		"group and has the same account, the monthly sum of the new group includes the costs of the old group. Default: " +
		"the group's id.",
	"nodeGroups.*.spending.perNode": "The maximum price of a node per hour; " +
		"more expensive offers are not used.",
	"nodeGroups.*.spending.hourly": "Limits of the cost per hour of all nodes together. Nodes that are being " +
		"created count, too.",
	"nodeGroups.*.spending.hourly.soft":  "From this sum on, an alert warns.",
	"nodeGroups.*.spending.hourly.hard":  "An increase that might exceed this sum is refused.",
	"nodeGroups.*.spending.monthly":      "Limits of the spending in a calendar month, in UTC.",
	"nodeGroups.*.spending.monthly.soft": "From this sum on, an alert warns.",
	"nodeGroups.*.spending.monthly.hard": "From this sum on, the group does not grow until the next month. Running " +
		"nodes stay and continue to cost.",
	"nodeGroups.*.selector.matchLabels":                 "Labels that an offer must have.",
	"nodeGroups.*.selector.matchLabels.*":               "The label's value.",
	"nodeGroups.*.selector.matchExpressions":            "Conditions that an offer must meet.",
	"nodeGroups.*.selector.matchExpressions.*":          "A condition on one label.",
	"nodeGroups.*.selector.matchExpressions.*.key":      "The label's key.",
	"nodeGroups.*.selector.matchExpressions.*.operator": "The kind of the condition. Only In and NotIn use `values`.",
	"nodeGroups.*.selector.matchExpressions.*.values":   "The values, for In and NotIn.",
	"nodeGroups.*.selector.matchExpressions.*.values.*": "A value.",
	"nodeGroups.*.budgets": "Time limits for an instance. The clock of `peer`, `network`, `join` and `drain` runs while a " +
		"worker runs the step, and counts at most 10s between two of its heartbeats. So on a busy machine, or without a " +
		"worker, a step may take longer than its budget.",
	"nodeGroups.*.budgets.peer": "The maximum time for one attempt to create the peering, without its network. Default " +
		"90s.",
	"nodeGroups.*.budgets.network": "The maximum time for one attempt to connect the peering's network. A load balancer " +
		"may need minutes. Default 5m.",
	"nodeGroups.*.budgets.join": "The maximum time for one attempt until its virtual node is " +
		"Ready. Default 2m.",
	"nodeGroups.*.budgets.total": "How long after its booking an instance may begin an attempt on a provider. An " +
		"attempt that has begun may still use its budgets peer, network and join. Set it below Cluster Autoscaler's " +
		"--max-node-provision-time. Default 12m.",
	"nodeGroups.*.budgets.drain": "The maximum time to evict pods; pods that remain are deleted with the node. " +
		"Default 10m.",
	"nodeGroups.*.budgets.selectWait": "How long an instance waits for free capacity when every provider that fits is " +
		"full. Default 20s.",
	"nodeGroups.*.budgets.unready": "How long a node may be not ready while its provider does not answer. After this " +
		"time the instance is lost: its pods are deleted, and Cluster Autoscaler may request another node. 0 means never. " +
		"Default 5m.",
	"nodeGroups.*.budgets.isolated": "Applies while no provider answers, because then the cause is probably this " +
		"cluster's own network: no instance is declared lost before this time has passed. 0 means without limit. " +
		"Default 30m.",
	"nodeGroups.*.budgets.podStart": "How long a pod on its virtual node may need to start its first container. After " +
		"this time `status`, a metric and an alert report the pod. Set it to more than the time in which a provider adds a " +
		"node. Default 10m.",
	"nodeGroups.*.budgets.failedTTL": "How long a failed instance that Cluster Autoscaler does not delete stays listed. " +
		"Default 1h.",
})

// withDefaultsToo adds descriptions of the fields of defaults. Each of these fields has the same text as the field of
// a group.
func withDefaultsToo(of map[string]string) map[string]string {
	out := map[string]string{}
	for path, text := range of {
		out[path] = text
		rest, ok := strings.CutPrefix(path, "nodeGroups.*.")
		field, _, _ := strings.Cut(rest, ".")
		if _, inherits := inherited[field]; ok && inherits {
			out["defaults."+rest] = text
		}
	}
	return out
}
