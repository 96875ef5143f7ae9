package liqo_test

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/backendtest"
)

func authentication(name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "authentication.liqo.io", Version: "v1beta1", Resource: name}
}

func offloading(name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "offloading.liqo.io", Version: "v1beta1", Resource: name}
}

func networking(name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "networking.liqo.io", Version: "v1beta1", Resource: name}
}

// watched returns the kinds of which an object owned by us could be left.
func watched() []schema.GroupVersionResource {
	core := func(name string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Version: "v1", Resource: name}
	}
	return []schema.GroupVersionResource{
		core("namespaces"), core("secrets"), core("configmaps"), core("nodes"), core("serviceaccounts"),
		{Group: "apps", Version: "v1", Resource: "deployments"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
		authentication("resourceslices"), authentication("tenants"), authentication("identities"), authentication("renews"),
		offloading("virtualnodes"), offloading("quotas"), offloading("namespacemaps"),
	}
}

// objects is World.Objects: it returns the objects that carry our labels, and the objects that Liqo has derived from
// them under a name that contains ours.
func (l *lab) objects(ctx context.Context) (found []backendtest.Object, err error) {
	for _, c := range l.clusters {
		if c.cut {
			continue
		}
		for _, kind := range watched() {
			list, err := c.any.Resource(kind).List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, fmt.Errorf("list %s of %s: %w", kind.Resource, c.name, err)
			}
			for i := range list.Items {
				if ours(&list.Items[i]) {
					found = append(found, c.object(&list.Items[i]))
				}
			}
		}
	}
	return found, nil
}

func ours(o *unstructured.Unstructured) bool {
	return o.GetLabels()[backend.LabelManagedBy] == backend.ManagedBy ||
		strings.Contains(o.GetName(), group+"-") && o.GetName() != podNamespace
}

func (c *cluster) object(o *unstructured.Unstructured) backendtest.Object {
	provider := c.name
	if c.name == consumer {
		provider = o.GetLabels()["liqo.io/remote-cluster-id"]
	}
	return backendtest.Object{Where: c.name, Provider: provider, Kind: o.GetKind(), Name: o.GetName(),
		Refusal: o.GetLabels()[backend.LabelRefused] != ""}
}
