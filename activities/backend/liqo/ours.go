package liqo

import (
	"maps"

	"github.com/liqotech/liqo/pkg/consts"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

// labelConsumer is the label with the Liqo id of the cluster whose hub made the object. Without this label, two hubs
// with the same name would treat each other's objects as their own: a cluster may be a provider for one cluster and a
// consumer of another one, and crd-replicator copies a slice's labels to the provider.
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

// tags returns the keys that identify the owner of an object. On a Node they are annotations. On any other object
// they are labels, so that the object can be selected by them.
func tags(object client.Object) map[string]string {
	if _, node := object.(*corev1.Node); node {
		return object.GetAnnotations()
	}
	return object.GetLabels()
}

// nodesOf selects Nodes by the one label that we set on them. If the scope has a provider, it also selects them by
// Liqo's label. Without a group in the scope, it selects the Nodes of all groups of all hubs.
func nodesOf(scope backend.Scope) *client.ListOptions {
	return (&client.ListOptions{}).ApplyOptions([]client.ListOption{client.HasLabels{backend.LabelGroup}, within(scope)})
}

// within returns the labels that the objects of the scope's attempts have on the consumer.
func within(scope backend.Scope) client.MatchingLabels {
	labels := client.MatchingLabels{}
	if scope.Group != "" {
		labels[backend.LabelGroup] = scope.Group
	}
	if scope.Provider != "" {
		labels[consts.RemoteClusterID] = scope.Provider
	}
	return labels
}

// with returns the union of label sets. If several sets have the same key, the last of these sets decides its value.
func with(sets ...map[string]string) map[string]string {
	union := map[string]string{}
	for _, set := range sets {
		maps.Copy(union, set)
	}
	return union
}
