package keep

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"golang.org/x/sync/errgroup"
)

// kinds contains the resource of each kind of object that a cluster receives from Liqo's chart. It would take longer
// to read the resources from the API server. Liqo's Deployments run as processes. One Deployment is also applied,
// without pods.
var kinds = map[string]struct {
	resource   string
	namespaced bool
}{
	"CustomResourceDefinition":       {"customresourcedefinitions", false},
	"ClusterRole":                    {"clusterroles", false},
	"ClusterRoleBinding":             {"clusterrolebindings", false},
	"RuntimeClass":                   {"runtimeclasses", false},
	"MutatingWebhookConfiguration":   {"mutatingwebhookconfigurations", false},
	"ValidatingWebhookConfiguration": {"validatingwebhookconfigurations", false},
	"Role":                           {"roles", true},
	"RoleBinding":                    {"rolebindings", true},
	"ServiceAccount":                 {"serviceaccounts", true},
	"ConfigMap":                      {"configmaps", true},
	"VkOptionsTemplate":              {"vkoptionstemplates", true},
	"Deployment":                     {"deployments", true},
	"Service":                        {"services", true},
	"Network":                        {"networks", true},
	"FirewallConfiguration":          {"firewallconfigurations", true},
	"WgGatewayServerTemplate":        {"wggatewayservertemplates", true},
	"WgGatewayClientTemplate":        {"wggatewayclienttemplates", true},
}

// apply applies the chart's objects of the chosen kinds, by server-side apply and concurrently. It returns when all
// exist.
func (c *cluster) apply(ctx context.Context, ch chart, chosen ...string) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for _, kind := range chosen {
		for _, o := range ch[kind] {
			group.Go(func() error { return c.applyOne(ctx, o) })
		}
	}
	return group.Wait()
}

func (c *cluster) applyOne(ctx context.Context, o *unstructured.Unstructured) error {
	kind := kinds[o.GetKind()]
	version, err := schema.ParseGroupVersion(o.GetAPIVersion())
	if err != nil {
		return fmt.Errorf("apply %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	objects := c.objects.Resource(version.WithResource(kind.resource))
	options := metav1.ApplyOptions{FieldManager: "lab", Force: true}
	var last error
	// After a new definition is established, its resource may be missing for a moment. On a busy machine, this may
	// take a quarter of a minute.
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true,
		func(ctx context.Context) (bool, error) {
			if kind.namespaced {
				if o.GetNamespace() == "" {
					o.SetNamespace(liqoNamespace)
				}
				_, last = objects.Namespace(o.GetNamespace()).Apply(ctx, o.GetName(), o, options)
			} else {
				_, last = objects.Apply(ctx, o.GetName(), o, options)
			}
			if apierrors.IsNotFound(last) || apierrors.IsServiceUnavailable(last) || apierrors.IsTooManyRequests(last) {
				return false, nil
			}
			return true, last
		})
	if err != nil {
		if last != nil {
			err = last
		}
		return fmt.Errorf("apply %s %s to %s: %w", o.GetKind(), o.GetName(), c.name, err)
	}
	return nil
}

// established waits until the API server serves all custom resources.
func (c *cluster) established(ctx context.Context) error {
	definitions := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions"}
	var missing string
	err := wait.PollUntilContextTimeout(ctx, 300*time.Millisecond, time.Minute, true,
		func(ctx context.Context) (bool, error) {
			list, err := c.objects.Resource(definitions).List(ctx, metav1.ListOptions{})
			if err != nil {
				return false, fmt.Errorf("list custom resource definitions of %s: %w", c.name, err)
			}
			for _, d := range list.Items {
				if !condition(d.Object, "Established") {
					missing = d.GetName()
					return false, nil
				}
			}
			return true, nil
		})
	if err != nil {
		return fmt.Errorf("wait for custom resources of %s, %s is not established: %w", c.name, missing, err)
	}
	return nil
}

func condition(object map[string]any, kind string) bool {
	conditions, _, _ := unstructured.NestedSlice(object, "status", "conditions")
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == kind {
			return m["status"] == "True"
		}
	}
	return false
}
