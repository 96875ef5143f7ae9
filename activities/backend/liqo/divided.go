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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

// undivided is ErrConflict while a clusterSelector selects some of the provider's virtual nodes, the new one included,
// and not all. Liqo maps a namespace onto a provider, or takes that back, for each virtual node in turn (Liqo
// namespaceoffloading-controller/clusterselector.go): it would remove the remote namespace with all that is in it.
func (j *join) undivided(ctx context.Context, virtual *offloadingv1beta1.VirtualNode) error {
	var offloadings offloadingv1beta1.NamespaceOffloadingList
	if err := j.local.List(ctx, &offloadings); err != nil {
		return fmt.Errorf("list NamespaceOffloadings: %w", err)
	}
	var there offloadingv1beta1.VirtualNodeList
	if err := j.local.List(ctx, &there, client.MatchingLabels{consts.RemoteClusterID: j.Provider.ID}); err != nil {
		return fmt.Errorf("list virtual nodes on %s: %w", j.Provider.ID, err)
	}
	for i := range offloadings.Items {
		o := &offloadings.Items[i]
		selector, err := nodeaffinity.NewNodeSelector(&o.Spec.ClusterSelector)
		if err != nil || len(o.Spec.ClusterSelector.NodeSelectorTerms) == 0 {
			continue // it selects nothing, or all
		}
		for k := range there.Items {
			if other := &there.Items[k]; selector.Match(selectable(other)) != selector.Match(selectable(virtual)) {
				return say(backend.ErrConflict, "NamespaceOffloading %s/%s selects only one of the nodes %s and %s on "+
					"provider %s, and Liqo would remove the namespace there: let its clusterSelector name labels that all "+
					"groups on that provider have alike", o.Namespace, o.Name, other.Name, virtual.Name, j.Provider.ID)
			}
		}
	}
	return nil
}

// selectable is the Node that Liqo takes a virtual node for (Liqo pkg/utils/virtualnode).
func selectable(virtual *offloadingv1beta1.VirtualNode) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: virtual.Name, Labels: with(virtual.Spec.Labels,
		map[string]string{
			consts.RemoteClusterID:       string(virtual.Spec.ClusterID),
			consts.StorageAvailableLabel: strconv.FormatBool(len(virtual.Spec.StorageClasses) == 0),
		})}}
}
