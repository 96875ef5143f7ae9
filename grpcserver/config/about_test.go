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
	"limits": "Limits of all groups together, for the sum of the shapes of all counted instances. An increase that " +
		"would exceed one is refused.",
	"limits.nodes":  "The maximum number of instances that count.",
	"limits.cpu":    "The maximum CPU, as a quantity.",
	"limits.memory": "The maximum memory, as a quantity.",
	"nodeGroups":    "Classes of capacity Cluster Autoscaler may grow.",
	"nodeGroups.*":  "One class of capacity; all its nodes have the same size.",
	"nodeGroups.*.id": "The group's name for Cluster Autoscaler and in node names. It must not change, and neither must " +
		"shape, labels and taints under the same id.",
	"nodeGroups.*.min": "The minimum for Cluster Autoscaler, which enforces it only with " +
		"--enforce-node-group-min-size.",
	"nodeGroups.*.max":     "The maximum number of instances that count; with `per` or `sizes`, of each resulting group.",
	"nodeGroups.*.shape":   "Capacity and allocatable of each node: at least cpu, memory and pods.",
	"nodeGroups.*.shape.*": "A quantity, such as 4, 500m or 8Gi.",
	"nodeGroups.*.sizes": "Instead of `shape`: one group for each size, `<id>-<name>`, or with `per` one for each " +
		"size and provider or label value, `<id>-<name>-<place>`. `max` and `minPerGroup` apply to each group.",
	"nodeGroups.*.sizes.*":         "A shape of nodes.",
	"nodeGroups.*.sizes.*.name":    "The size's name, part of its groups' ids. It must not change.",
	"nodeGroups.*.sizes.*.shape":   "As the shape of a group; missing keys come from the defaults.",
	"nodeGroups.*.sizes.*.shape.*": "A quantity, such as 4, 500m or 8Gi.",
	"nodeGroups.*.sizes.*.priceFactor": "Factor on an offer's price per node for a node of this size. Default: 1 for " +
		"the first size, and for every other size in proportion to its shape (0.03 per CPU, 0.004 per GiB, 1 per GPU). It " +
		"does not apply to an offer's prices by resource.",
	"nodeGroups.*.priceFactor": "Factor on an offer's price per node for a node of the group. Default: 1. It does not " +
		"apply to an offer's prices by resource, which already follow the shape.",
	"nodeGroups.*.currency": "The currency of all prices, an ISO 4217 code, the same for all groups: give it in the " +
		"defaults. Offers that name another one are not used. Default: USD.",
	"nodeGroups.*.nodes": "The kind of the nodes: `virtual`, Liqo's (the default), or `machine`, of workers with --backend " +
		"microvm. All groups of an installation are of one kind.",
	"nodeGroups.*.labels":          "Labels of every node of the group.",
	"nodeGroups.*.labels.*":        "A label value.",
	"nodeGroups.*.taints":          "Taints of every node of the group, in addition to Liqo's own on virtual ones.",
	"nodeGroups.*.taints.*":        "A taint.",
	"nodeGroups.*.taints.*.key":    "The taint's key.",
	"nodeGroups.*.taints.*.value":  "The taint's value.",
	"nodeGroups.*.taints.*.effect": "The effect of the taint on pods that do not tolerate it.",
	"nodeGroups.*.groupTaint": "Effect of an additional taint, liqo-autoscaler.io/group=<id>, which keeps away pods " +
		"that do not tolerate it. Empty for none.",
	"nodeGroups.*.provider": "The only provider of the group, by its Liqo cluster id.",
	"nodeGroups.*.per": "`any` (the default): one group over all providers that match. `provider`: one group for each " +
		"matching provider. `label:<key>`: one group for each value of this label in the offers.",
	"nodeGroups.*.minPerGroup": "The minimum of each group that `per` or `sizes` create.",
	"nodeGroups.*.selector": "Which offers may serve the group, by their labels. " +
		"Default: all.",
	"nodeGroups.*.volumes": "`keep` (the default): while a provider holds volumes of this cluster, one of its nodes stays, " +
		"because Liqo deletes them with the last node. `delete`: the group's nodes do not stay for volumes.",
	"nodeGroups.*.standby": "How many providers are kept peered without a node of the group there, so that the next " +
		"node there needs a slice only. Default: 0.",
	"nodeGroups.*.selection": "The weights that choose among the offers that fit. Each part is between 0 and 1 and is " +
		"multiplied by its weight. The offer with the highest sum wins. Without weights the price alone decides.",
	"nodeGroups.*.selection.price": "Weight of the cheaper node: the lowest price of all that fit, divided by " +
		"the offer's.",
	"nodeGroups.*.selection.warm":    "Weight of an existing peering: 1 if the provider is peered, else 0.",
	"nodeGroups.*.selection.latency": "Weight of the closer provider: 1 at 0 ms, 0.5 at 50 ms, 0 for an offer without `latencyMilliseconds`.",
	"nodeGroups.*.selection.spread": "Weight of the provider with fewer nodes of the group: 1 with none, 1/2 with one, " +
		"1/3 with two.",
	"nodeGroups.*.selection.pack": "Weight of the provider with more nodes of the group: 0 with none, 1/2 with one, " +
		"2/3 with two.",
	"nodeGroups.*.selection.failures": "Weight of the provider that failed the group less: 1 without a failure, " +
		"1/2 right after one. A failure counts half as much every 30 minutes.",
	"nodeGroups.*.spending": "Limits of the costs of the group's nodes, in its currency; each group that `per` or `sizes` " +
		"create has its own. No limit removes a running node. A node whose offer has no price counts as free.",
	"nodeGroups.*.spending.account": "The account that the group's costs belong to. Groups may share an account. " +
		"The limits of such a group apply to the costs of all groups of the account, and a group that replaces another " +
		"group continues with its month. Default: the group's id.",
	"nodeGroups.*.spending.perNode": "The maximum price of a node per hour; " +
		"more expensive offers are not used.",
	"nodeGroups.*.spending.hourly": "Limits of the cost of all nodes together per hour, " +
		"including the nodes that are being created.",
	"nodeGroups.*.spending.hourly.soft":  "From here on there is a warning.",
	"nodeGroups.*.spending.hourly.hard":  "An increase that might exceed it is refused.",
	"nodeGroups.*.spending.monthly":      "Limits of the spending in a calendar month, in UTC.",
	"nodeGroups.*.spending.monthly.soft": "From here on there is a warning.",
	"nodeGroups.*.spending.monthly.hard": "From here on the group does not grow until the next month. " +
		"Running nodes stay and keep costing.",
	"nodeGroups.*.selector.matchLabels":                 "Labels an offer must have.",
	"nodeGroups.*.selector.matchLabels.*":               "The label's value.",
	"nodeGroups.*.selector.matchExpressions":            "Conditions an offer must meet.",
	"nodeGroups.*.selector.matchExpressions.*":          "A condition on one label.",
	"nodeGroups.*.selector.matchExpressions.*.key":      "The label's key.",
	"nodeGroups.*.selector.matchExpressions.*.operator": "How the label is compared.",
	"nodeGroups.*.selector.matchExpressions.*.values":   "The values, for In and NotIn.",
	"nodeGroups.*.selector.matchExpressions.*.values.*": "A value.",
	"nodeGroups.*.budgets":                              "Time limits for an instance.",
	"nodeGroups.*.budgets.peer": "The maximum time for one attempt to peer, without " +
		"its network. Default 90s.",
	"nodeGroups.*.budgets.network": "The maximum time for one attempt to connect the peering's " +
		"network; a load balancer takes minutes. Default 5m.",
	"nodeGroups.*.budgets.join": "The maximum time for one attempt until its virtual node is " +
		"Ready. Default 2m.",
	"nodeGroups.*.budgets.total": "How long after its booking an instance looks for a provider; an attempt that has " +
		"begun may still use its budgets peer, network and join. Keep it below Cluster Autoscaler's " +
		"--max-node-provision-time. Default 12m.",
	"nodeGroups.*.budgets.drain": "The maximum time to evict pods; pods that remain are deleted with the node. " +
		"Default 10m.",
	"nodeGroups.*.budgets.selectWait": "How long an instance waits for room when every provider that fits is full. " +
		"Default 20s.",
	"nodeGroups.*.budgets.unready": "How long a node may be not ready while its provider does not answer, before its " +
		"instance is lost: its pods are deleted, and Cluster Autoscaler may request another. 0 means never. Default 5m.",
	"nodeGroups.*.budgets.isolated": "How long no instance is declared lost while no provider answers, because the " +
		"cause is then probably this cluster's own network. 0 means without limit. Default 30m.",
	"nodeGroups.*.budgets.podStart": "How long a pod on its virtual node may take to start its first container. After " +
		"this time `status`, a metric and an alert report the pod. Allow more than a provider needs to add a node. Default 10m.",
	"nodeGroups.*.budgets.failedTTL": "How long a failed instance that Cluster Autoscaler does not delete stays listed. " +
		"Default 1h.",
})

// withDefaultsToo adds the fields of defaults to these descriptions, with the texts of a group's fields.
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
