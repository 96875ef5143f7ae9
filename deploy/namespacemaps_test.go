package deploy_test

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var namespaceMaps = liqoKind("offloading", "namespacemaps")

// replica returns a NamespaceMap of the consumer rome in the form in which rome's crd-replicator creates it on a
// provider (Liqo internal/crdReplicator/reflection/handler.go).
func replica(name string, mapping map[string]any) *unstructured.Unstructured {
	u := liqoObject("NamespaceMap", consumerNamespace, name, map[string]any{"desiredMapping": mapping})
	u.SetAPIVersion("offloading.liqo.io/v1beta1")
	u.SetLabels(map[string]string{originID: "rome", "liqo.io/replicated": "true", "liqo.io/replication": "false",
		"liqo.io/remoteID": "milan", remoteID: "rome"})
	return u
}

// consumerNamespaces checks the policy for NamespaceMaps. A consumer's NamespaceMap must have the label that names
// the consumer as its origin. It must not name a namespace that belongs to another consumer or to the provider, or
// that another consumer's map would create.
func consumerNamespaces(t *testing.T, c *cluster, account holder) {
	outgoing := replica("outgoing", nil)
	outgoing.SetLabels(map[string]string{"liqo.io/replication": "true", "liqo.io/remoteID": "rome", remoteID: "rome"})
	for _, object := range []*unstructured.Unstructured{replica("here", map[string]any{"shop": "liqo-demo"}), outgoing} {
		c.createServed(t, namespaceMaps, object)
	}
	h := c.identity(t, "rome", "liqo.io")
	to := func(namespace string) func(context.Context) error {
		return h.createLiqo(namespaceMaps, consumerNamespace, replica("new", map[string]any{"a": "a-rome", "b": namespace}))
	}
	label := func(key string, value any) func(context.Context) error {
		made := replica("new", map[string]any{"a": "a-rome"})
		labels := made.Object["metadata"].(map[string]any)["labels"].(map[string]any)
		if labels[key] = value; value == nil {
			delete(labels, key)
		}
		return h.createLiqo(namespaceMaps, consumerNamespace, made)
	}
	patch := func(name, change string, of ...string) func(context.Context) error {
		return h.patch(namespaceMaps, consumerNamespace, name, change, of...)
	}
	const names, origin = "a NamespaceMap names neither", "liqo.io/originID of a consumer's"
	attempts := []attempt{{"tenant namespace of another", names, to("liqo-tenant-turin")}}
	for _, namespace := range []string{"liqo-tenant-turin-rome", "liqo-tenant-rome", "liqo", "liqo-storage",
		"liqo-autoscaler", "default", "kube-system", "kube-new-rome", "openshift", "openshift-monitoring"} {
		attempts = append(attempts, attempt{namespace, names, to(namespace)})
	}
	for what, namespace := range map[string]string{"default name": "shop-rome", "default name of default": "default-rome",
		"default name of one of Liqo's": "liqo-demo-rome", "same name": "shop", "name that begins like another": "kubeflow"} {
		attempts = append(attempts, attempt{what, "", to(namespace)})
	}
	attempts = append(attempts,
		attempt{"for all consumers", origin, label(originID, "liqo.io")},
		attempt{"for another consumer", origin, label(originID, "turin")},
		attempt{"for no consumer", origin, label(originID, nil)},
		attempt{"to be replicated", "this cluster's Liqo replicates", label("liqo.io/replication", "true")},
		attempt{"another origin", origin, patch("here", `{"metadata": {"labels": {"liqo.io/originID": "turin"}}}`)},
		attempt{"the provider's own", origin, patch("outgoing", `{"spec": {"desiredMapping": {"a": "a"}}}`)},
		attempt{"the provider's own taken over", origin, patch("outgoing",
			`{"metadata": {"labels": {"liqo.io/originID": "rome", "liqo.io/replication": null}}}`)},
		attempt{"status of the provider's own", "the status of a NamespaceMap", patch("outgoing",
			`{"status": {"currentMapping": {"kube-system": {"remoteNamespace": "a", "phase": "Accepted"}}}}`, "status")},
		attempt{"one more", names, patch("here", `{"spec": {"desiredMapping": {"a": "kube-system"}}}`)},
		attempt{"one more namespace in an existing map", "", patch("here", `{"spec": {"desiredMapping": {"a": "a-rome"}}}`)},
		attempt{"one less", "", patch("here", `{"spec": {"desiredMapping": null}}`)},
		attempt{"the account", `cannot create resource "namespacemaps"`, account.createLiqo(namespaceMaps, consumerNamespace,
			replica("new", map[string]any{}))})
	for who, is := range consumerIdentities(t, c) {
		attempts = append(attempts, attempt{who, names, is.createLiqo(namespaceMaps, consumerNamespace,
			replica("new", map[string]any{"a": "liqo-tenant-turin"}))})
	}
	many := map[string]any{}
	for n := range 201 {
		many[fmt.Sprint("n", n)] = fmt.Sprintf("n%d-rome", n)
	}
	attempts = append(attempts, attempt{"201 namespaces", "at most 200 namespaces", h.createLiqo(namespaceMaps,
		consumerNamespace, replica("new", many))})
	c.judge(t, attempts)
}
