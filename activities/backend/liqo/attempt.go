package liqo

import (
	"context"
	"fmt"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	"github.com/liqotech/liqo/pkg/consts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/nodes"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// attempt contains one attempt's objects while one verb works on them.
type attempt struct {
	*peering
	fleet.Attempt
}

func (b *Backend) attempt(of fleet.Attempt) *attempt {
	return &attempt{peering: b.peering(of.Provider), Attempt: of}
}

func (a *attempt) name() string { return a.ObjectName() }

func (a *attempt) labels() map[string]string { return backend.TagsOf(a.Attempt, a.peering.labels()) }

func (a *attempt) mine(object client.Object) bool { return backend.Carries(tags(object), a.labels()) }

// slice finds this attempt's slice in any namespace. It returns NotFound when the slice does not exist.
func (a *attempt) slice(ctx context.Context) (*authv1beta1.ResourceSlice, error) {
	var found authv1beta1.ResourceSliceList
	if err := a.local.List(ctx, &found, client.MatchingLabels(a.labels())); err != nil {
		return nil, fmt.Errorf("find slice %s: %w", a.name(), err)
	}
	for i := range found.Items {
		if found.Items[i].Name == a.name() {
			return &found.Items[i], nil
		}
	}
	return nil, apierrors.NewNotFound(authv1beta1.ResourceSliceGroupResource, a.name())
}

// virtualNode finds this attempt's virtual node in any namespace. It returns NotFound when the virtual node does not
// exist.
func (a *attempt) virtualNode(ctx context.Context) (*offloadingv1beta1.VirtualNode, error) {
	var found offloadingv1beta1.VirtualNodeList
	if err := a.local.List(ctx, &found, client.MatchingLabels(a.labels())); err != nil {
		return nil, fmt.Errorf("find virtual node %s: %w", a.name(), err)
	}
	for i := range found.Items {
		if found.Items[i].Name == a.name() {
			return &found.Items[i], nil
		}
	}
	return nil, apierrors.NewNotFound(offloadingv1beta1.VirtualNodeGroupVersionResource.GroupResource(), a.name())
}

// node finds this attempt's Node. It returns NotFound when the Node does not exist, or when the Node of that name is
// not ours. Liqo up to 1.1 makes the Node first and labels it afterwards. Therefore node also recognizes the Node by
// its virtual node, and by the instance id, which cannot be removed.
func (a *attempt) node(ctx context.Context, from *offloadingv1beta1.VirtualNode) (*corev1.Node, error) {
	var found corev1.Node
	if err := a.local.Get(ctx, client.ObjectKey{Name: a.name()}, &found); err != nil {
		return nil, err
	}
	if a.mine(&found) || from != nil && (found.Spec.ProviderID == a.InstanceID() ||
		found.Labels[consts.RemoteClusterID] == a.Provider.ID && found.Labels[consts.TypeLabel] == consts.TypeNode) {
		return &found, nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("nodes"), a.name())
}

// unmark removes the mark from the virtual node, so that its Node is not stamped again. It returns nil when the virtual
// node has no mark.
func (a *attempt) unmark(ctx context.Context, virtual *offloadingv1beta1.VirtualNode) error {
	if _, marked := virtual.Annotations[backend.AnnotationStamp]; !marked {
		return nil
	}
	err := nodes.MergePatch(ctx, a.local, virtual, map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{backend.AnnotationStamp: nil}},
	})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("take the mark off virtual node %s: %w", virtual.Name, err)
	}
	return nil
}
