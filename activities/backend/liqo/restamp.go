package liqo

import (
	"context"
	"fmt"

	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/nodes"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Restamp sets the instance id again on the Node of a marked virtual node. The id is missing when a virtual kubelet
// has registered a deleted Node again (Liqo cmd/virtual-kubelet/root/root.go). Restamp reads and writes once and does
// not wait. Like Join, it does not stamp a Node that may still get the taint unreachable (see stampStep). In this
// case it returns ErrNotYet.
//
// Until the Node is stamped, CA sees an instance without a Node, and a Node without an instance. CA counts the
// instance as still starting and does not request another one. It deletes the instance after its
// max-node-provision-time, so a Node that is never stamped ends in the same way as a Node that never registers. The
// group may count the instance as lost before that: it only checks whether the Node is Ready, and ignores the
// instance id.
func (b *Backend) Restamp(ctx context.Context, of fleet.Attempt) error {
	if err := b.attempt(of).restamp(ctx); err != nil {
		return fmt.Errorf("restamp node %s: %w", of.ObjectName(), err)
	}
	return nil
}

func (a *attempt) restamp(ctx context.Context) error {
	var err error
	if a.self, err = a.consumer(ctx); err != nil {
		return err
	}
	virtual, err := a.virtualNode(ctx)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	if virtual.DeletionTimestamp != nil || !a.marks(virtual) {
		return nil
	}
	if err := a.retag(ctx, virtual); err != nil {
		return err
	}
	node, err := a.node(ctx, virtual)
	if apierrors.IsNotFound(err) {
		return a.requestRegistration(ctx, virtual)
	}
	if err != nil {
		return err
	}
	switch {
	case node.DeletionTimestamp != nil:
		return nil
	case node.Spec.ProviderID == a.InstanceID():
		return a.restoreTags(ctx, node)
	case node.Spec.ProviderID != "":
		return foreignProviderID(node)
	}
	if lacks := nodes.Unsettled(node, promised(virtual)); lacks != "" {
		return errorf(backend.ErrNotYet, "%s", lacks)
	}
	return a.stampOnce(ctx, node)
}

// restoreTags restores our removed keys on the Node: the label by which List finds it, and the annotations that
// identify its owner.
func (a *attempt) restoreTags(ctx context.Context, node *corev1.Node) error {
	if a.mine(node) && node.Labels[backend.LabelGroup] == a.Group {
		return nil
	}
	err := nodes.MergePatch(ctx, a.local, node, map[string]any{"metadata": map[string]any{
		"uid": node.UID, "labels": map[string]any{backend.LabelGroup: a.Group}, "annotations": a.labels()}})
	if err != nil {
		return fmt.Errorf("put back our label and annotations: %w", client.IgnoreNotFound(err))
	}
	return nil
}

// promised returns the spec of the Node that the virtual kubelet makes for its virtual node.
func promised(virtual *offloadingv1beta1.VirtualNode) backend.NodeSpec {
	return backend.NodeSpec{Labels: virtual.Spec.Labels, Taints: virtual.Spec.Taints,
		Shape: virtual.Spec.ResourceQuota.Hard}
}

// stampOnce stamps a Node that had no instance id when it was read.
func (a *attempt) stampOnce(ctx context.Context, node *corev1.Node) error {
	if stamped, err := a.isStamped(ctx, node); stamped || err != nil {
		return err
	}
	return a.stamp(ctx, node)
}

// retag moves the tags of a Node of an earlier release from labels to annotations. It changes the virtual node, and
// Liqo then changes the Node. Liqo would restore a label that was removed from the Node alone (Liqo
// pkg/virtualKubelet/liqoNodeProvider/utils.go).
func (a *attempt) retag(ctx context.Context, virtual *offloadingv1beta1.VirtualNode) error {
	off := map[string]any{}
	for key := range a.labels() {
		if _, on := virtual.Spec.Labels[key]; on && key != backend.LabelGroup {
			off[key] = nil
		}
	}
	if len(off) == 0 {
		return nil
	}
	err := nodes.MergePatch(ctx, a.local, virtual, map[string]any{
		"spec": map[string]any{"labels": off, "annotations": a.labels()},
	})
	if err != nil {
		return fmt.Errorf("take labels off virtual node: %w", err)
	}
	return nil
}

// isStamped lists the group's Nodes and reports whether the Node carries the instance id by now, because Join or
// another worker was faster. It returns ErrConflict when another Node carries the instance id.
func (a *attempt) isStamped(ctx context.Context, node *corev1.Node) (bool, error) {
	var nodes corev1.NodeList
	if err := a.local.List(ctx, &nodes, nodesOf(backend.Scope{Group: a.Group})); err != nil {
		return false, fmt.Errorf("list nodes of group %s: %w", a.Group, err)
	}
	for i := range nodes.Items {
		switch {
		case nodes.Items[i].Spec.ProviderID != a.InstanceID():
		case nodes.Items[i].Name == node.Name:
			return true, nil
		default:
			return false, errorf(backend.ErrConflict, "Node %s carries the instance id already", nodes.Items[i].Name)
		}
	}
	return false, nil
}
