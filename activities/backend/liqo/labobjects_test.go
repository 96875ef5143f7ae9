package liqo_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

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

// watched returns the kinds of the objects that could be left after a removal.
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

// objects implements World.Objects. It returns the objects that carry our labels. It also returns the objects that
// Liqo has made for them: the name of such an object contains the name of one of ours. It first waits up to five
// seconds, until the garbage collector has removed the objects whose owner is gone. For example, a slice's Identity
// owns a Secret, and this Secret exists for a moment after the slice and the Identity are gone.
func (l *lab) objects(ctx context.Context) (found []backendtest.Object, err error) {
	patient, end := context.WithTimeout(ctx, 5*time.Second)
	defer end()
	waited := poll(patient, func(ctx context.Context) (collected bool, err error) {
		found, collected, err = l.listed(ctx)
		return collected, err
	})
	if waited != nil && patient.Err() != nil && ctx.Err() == nil {
		found, _, err = l.listed(ctx) // objects that are never collected are reported
		return found, err
	}
	return found, waited
}

// listed lists the objects once. The result collected reports whether the garbage collector has removed every object
// whose owner is gone.
func (l *lab) listed(ctx context.Context) (found []backendtest.Object, collected bool, err error) {
	collected = true
	for _, c := range l.clusters {
		if c.cut {
			continue
		}
		var mine []unstructured.Unstructured
		kinds, exist := map[string]bool{}, map[types.UID]bool{}
		for _, kind := range watched() {
			list, err := c.any.Resource(kind).List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, false, fmt.Errorf("list %s of %s: %w", kind.Resource, c.name, err)
			}
			kinds[strings.TrimSuffix(list.GetKind(), "List")] = true
			for _, object := range list.Items {
				exist[object.GetUID()] = true
				if ours(&object) {
					mine = append(mine, object)
					found = append(found, c.object(&object))
				}
			}
		}
		gone := func(o metav1.OwnerReference) bool { return kinds[o.Kind] && !exist[o.UID] }
		for _, object := range mine {
			collected = collected && !slices.ContainsFunc(object.GetOwnerReferences(), gone)
		}
	}
	return found, collected, nil
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
