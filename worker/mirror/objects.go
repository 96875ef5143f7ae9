package mirror

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

// GroupVersion is the API of the mirror's objects.
var GroupVersion = schema.GroupVersion{Group: "liqo-autoscaler.io", Version: "v1alpha1"}

// Kind is the kind of a mirrored object.
type Kind string

// These constants are the kinds. The chart's folder crds contains a CRD for each kind.
const (
	KindGroup Kind = "LiqoNodeGroup"
	KindOffer Kind = "LiqoOffer"
)

// Resource returns the name of the kind's resource in the API.
func (k Kind) Resource() string {
	if k == KindGroup {
		return "liqonodegroups"
	}
	return "liqooffers"
}

// Key identifies an object of the mirror in its namespace.
type Key struct {
	Kind Kind
	Name string
}

// Object is an object of the mirror. An empty Version means that the object does not exist yet.
type Object struct {
	Key
	// UID, Version and Generation are the uid, resourceVersion and generation of the object's metadata.
	UID, Version string
	Generation   int64
	// Status is the whole content of the status, in the form that unstructured objects use.
	Status map[string]any
}

// Cluster implements Objects for one hub and one namespace of the consumer cluster.
type Cluster struct {
	Client         dynamic.Interface
	Namespace, Hub string
}

// List implements Objects. It selects the objects by the hub's labels.
func (c Cluster) List(ctx context.Context, kind Kind) (all []Object, err error) {
	objects := c.of(kind)
	list, err := objects.List(ctx, metav1.ListOptions{LabelSelector: labels.SelectorFromSet(backend.Ours(c.Hub)).String()})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", kind.Resource(), err)
	}
	for _, item := range list.Items {
		all = append(all, read(kind, &item))
	}
	return all, nil
}

// Apply implements Objects. A replacement fails with a conflict if the object's resourceVersion has changed.
func (c Cluster) Apply(ctx context.Context, o Object) (Object, error) {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(GroupVersion.WithKind(string(o.Kind)))
	u.SetNamespace(c.Namespace)
	u.SetName(o.Name)
	u.SetLabels(backend.Ours(c.Hub))
	objects := c.of(o.Kind)
	var err error
	if o.Version == "" {
		u, err = objects.Create(ctx, u, metav1.CreateOptions{})
	} else {
		u.SetUID(types.UID(o.UID))
		u.SetResourceVersion(o.Version)
		u.Object["status"] = o.Status
		u, err = objects.Update(ctx, u, metav1.UpdateOptions{}, "status")
	}
	if err != nil {
		return Object{}, fmt.Errorf("write %s %s: %w", o.Kind.Resource(), o.Name, err)
	}
	return read(o.Kind, u), nil
}

// Delete implements Objects. It fails with a conflict if the object's uid or resourceVersion has changed.
func (c Cluster) Delete(ctx context.Context, o Object) error {
	uid := types.UID(o.UID)
	objects := c.of(o.Kind)
	err := objects.Delete(ctx, o.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid,
		ResourceVersion: &o.Version}})
	if err != nil {
		return fmt.Errorf("delete %s %s: %w", o.Kind.Resource(), o.Name, err)
	}
	return nil
}

func (c Cluster) of(kind Kind) dynamic.ResourceInterface {
	return c.Client.Resource(GroupVersion.WithResource(kind.Resource())).Namespace(c.Namespace)
}

func read(kind Kind, u *unstructured.Unstructured) Object {
	status, _ := u.Object["status"].(map[string]any)
	return Object{Key: Key{kind, u.GetName()}, UID: string(u.GetUID()), Version: u.GetResourceVersion(),
		Generation: u.GetGeneration(), Status: status}
}
