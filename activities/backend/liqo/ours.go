package liqo

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

// labelConsumer is the label with the Liqo id of the cluster whose hub made the object. A cluster may offer capacity to
// one cluster and use the capacity of another, and crd-replicator copies a slice's labels to the provider: without this
// label, two hubs with the same name would treat each other's objects as their own.
const labelConsumer = "liqo-autoscaler.io/consumer"

// labelConsumerUID is a label of objects on a provider: the UID of the consumer's namespace kube-system. A consumer
// that was cloned, or restored elsewhere, has the same Liqo id and another UID.
const labelConsumerUID = "liqo-autoscaler.io/consumer-uid"

// ours returns the labels that make an object ours, on any cluster.
func (b *Backend) ours(self string) client.MatchingLabels {
	labels := backend.Ours(b.config.Hub)
	labels[labelConsumer] = self
	return labels
}

// isOurs reports whether a peering's object is owned by this hub.
func (b *Backend) isOurs(self string, object client.Object) bool {
	return backend.Carries(tags(object), b.ours(self))
}

// tags returns the keys that identify the owner of an object: its labels, by which it is selected, or a Node's
// annotations.
func tags(object client.Object) map[string]string {
	if _, node := object.(*corev1.Node); node {
		return object.GetAnnotations()
	}
	return object.GetLabels()
}

// nodesOf selects Nodes by the one label that we set on them. It selects the Nodes of a group, or with "" the Nodes of
// all groups of any hub.
func nodesOf(group string) client.ListOption {
	if group == "" {
		return client.HasLabels{backend.LabelGroup}
	}
	return client.MatchingLabels{backend.LabelGroup: group}
}

// with returns the union of label sets; a later set wins.
func with(sets ...map[string]string) map[string]string {
	union := map[string]string{}
	for _, set := range sets {
		maps.Copy(union, set)
	}
	return union
}
