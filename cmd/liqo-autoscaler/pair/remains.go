package pair

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// relation describes a kind of object that exists while a consumer uses a provider. It names the field that contains
// the id of the other cluster.
type relation struct {
	kind     string
	resource schema.GroupVersionResource
	field    []string
}

func liqoKind(group, resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group + ".liqo.io", Version: "v1beta1", Resource: resource}
}

// relations contains the kinds of objects in the consumer cluster, and in the provider's cluster.
var relations = map[string][]relation{
	"consumer": {
		{"Node", schema.GroupVersionResource{Version: "v1", Resource: "nodes"},
			[]string{"metadata", "labels", "liqo.io/remote-cluster-id"}},
		{"VirtualNode", liqoKind("offloading", "virtualnodes"), []string{"spec", "clusterID"}},
		{"ResourceSlice", liqoKind("authentication", "resourceslices"), []string{"spec", "providerClusterID"}},
		{"ForeignCluster", liqoKind("core", "foreignclusters"), []string{"spec", "clusterID"}},
	},
	"provider": {
		{"ResourceSlice", liqoKind("authentication", "resourceslices"), []string{"spec", "consumerClusterID"}},
		{"Tenant", liqoKind("authentication", "tenants"), []string{"spec", "clusterID"}},
	},
}

const (
	perPage  = 100
	maxNamed = 5
)

// unused returns an error if the cluster still has objects of a peering with the other cluster, or nodes on it. The
// error names these objects.
func (c *cluster) unused(ctx context.Context, other string) error {
	var remains []string
	for _, r := range relations[c.side] {
		names, err := c.find(ctx, r, other)
		if err != nil {
			return fmt.Errorf("%s: list %ss: %w", c, r.kind, err)
		}
		for _, name := range names[:min(len(names), maxNamed)] {
			remains = append(remains, r.kind+" "+name)
		}
		if more := len(names) - maxNamed; more > 0 {
			remains = append(remains, fmt.Sprintf("%d more %ss", more, r.kind))
		}
	}
	if len(remains) == 0 {
		return nil
	}
	return fmt.Errorf("%s: it still has objects with %s: %s. Nothing was removed. First cordon the provider, remove the "+
		"pods on "+
		"its nodes, and wait until the nodes and the peering are gone", c, other, strings.Join(remains, ", "))
}

// find returns the names of the objects of one kind that belong to the other cluster.
func (c *cluster) find(ctx context.Context, r relation, other string) (names []string, err error) {
	options := metav1.ListOptions{Limit: perPage}
	for {
		page, err := c.objects.Resource(r.resource).List(ctx, options)
		if apierrors.IsNotFound(err) {
			return nil, nil // the cluster does not have this kind
		}
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			id, _, _ := unstructured.NestedString(page.Items[i].Object, r.field...)
			if id == other {
				names = append(names, page.Items[i].GetName())
			}
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return names, nil
		}
	}
}
