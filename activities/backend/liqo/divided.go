package liqo

import (
	"context"
	"fmt"
	"strconv"

	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	"github.com/liqotech/liqo/pkg/consts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

// undivided returns ErrConflict if the new virtual node would divide the provider: a clusterSelector would select the
// new node and not an existing one, or an existing one and not the new one.
func (j *join) undivided(ctx context.Context, there []offloadingv1beta1.VirtualNode,
	virtual *offloadingv1beta1.VirtualNode) error {
	message, err := j.divided(ctx, append(there, *virtual))
	if err == nil && message != "" {
		err = errorf(backend.ErrConflict, "%s", message)
	}
	return err
}

// divided describes a clusterSelector that selects some of the provider's virtual nodes, but not all. It returns ""
// when no such selector exists. Liqo maps a namespace onto a provider, or removes the mapping, separately for each
// virtual node (Liqo namespaceoffloading-controller/clusterselector.go). For a virtual node that the selector does
// not select, Liqo would remove the remote namespace with all its objects.
func (p *peering) divided(ctx context.Context, there []offloadingv1beta1.VirtualNode) (string, error) {
	if len(there) < 2 {
		return "", nil
	}
	var offloadings offloadingv1beta1.NamespaceOffloadingList
	if err := p.local.List(ctx, &offloadings); err != nil {
		return "", fmt.Errorf("list NamespaceOffloadings: %w", err)
	}
	for i := range offloadings.Items {
		o := &offloadings.Items[i]
		selector, err := nodeaffinity.NewNodeSelector(&o.Spec.ClusterSelector)
		if err != nil || len(o.Spec.ClusterSelector.NodeSelectorTerms) == 0 {
			continue // an invalid selector selects nothing, an empty one everything
		}
		last := &there[len(there)-1]
		for k := range there {
			if other := &there[k]; selector.Match(selectable(other)) != selector.Match(selectable(last)) {
				return fmt.Sprintf("NamespaceOffloading %s/%s selects only one of the nodes %s and %s on provider %s, and "+
					"Liqo would remove the namespace there: let its clusterSelector name labels that all groups on that "+
					"provider have alike", o.Namespace, o.Name, other.Name, last.Name, p.provider.ID), nil
			}
		}
	}
	return "", nil
}

// selectable returns the Node that represents a virtual node when Liqo evaluates a selector (Liqo
// pkg/utils/virtualnode).
func selectable(virtual *offloadingv1beta1.VirtualNode) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: virtual.Name, Labels: with(virtual.Spec.Labels,
		map[string]string{
			consts.RemoteClusterID:       string(virtual.Spec.ClusterID),
			consts.StorageAvailableLabel: strconv.FormatBool(len(virtual.Spec.StorageClasses) == 0),
		})}}
}
