package liqo

import (
	"context"
	"errors"
	"fmt"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	"github.com/liqotech/liqo/pkg/consts"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/nodes"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Return removes the objects that Join made: on the consumer first, then on the provider.
func (b *Backend) Return(ctx context.Context, of fleet.Attempt, progress backend.Progress) error {
	a := b.attempt(of)
	a.started = backend.StartTime(ctx)
	w := &waiter{progress: progress, stubborn: true}
	err := backend.Through(ctx, w.until, []backend.Step{
		{Stage: backend.StageDrain, Poll: a.emptied},
		{Stage: backend.StageNodeGone, Poll: a.nodeGoneStep},
		{Stage: backend.StageSliceGone, Poll: a.sliceGone},
	})
	if err != nil {
		return fmt.Errorf("take back node %s of %s: %w", of.ObjectName(), of.Provider.ID, err)
	}
	return nil
}

// emptied drains the Node until no pod is left; after ForceAfter it deletes the pods. Liqo must not find any pod
// afterwards: its only worker drains virtual nodes one after another, waits for their pods without a timeout and polls
// every ten seconds (Liqo virtualnode-controller/{deletion-routine,drain}.go).
func (a *attempt) emptied(ctx context.Context) (bool, string, error) {
	if done, message, err := a.drainStep(ctx, a.hasLasted(a.config.ForceAfter)); !done || err != nil {
		return false, message, err
	}
	return a.unlabelEndedPods(ctx)
}

// nodeGoneStep deletes the virtual node. It reports done when the virtual node and its Node are gone. Liqo removes
// the Node together with the virtual kubelet. If a virtual kubelet has registered the Node again, nodeGoneStep itself
// deletes the Node, once no virtual kubelet runs any longer.
func (a *attempt) nodeGoneStep(ctx context.Context) (bool, string, error) {
	if err := a.locate(ctx); err != nil {
		return false, "", err
	}
	virtual, err := a.virtualNode(ctx)
	if client.IgnoreNotFound(err) != nil {
		return false, "", err
	}
	node, err := a.node(ctx, virtual)
	if client.IgnoreNotFound(err) != nil {
		return false, "", err
	}
	switch {
	case virtual != nil && node == nil && virtual.DeletionTimestamp == nil && !a.hasLasted(a.graces.register):
		return false, fmt.Sprintf("Node %s is about to be registered and waited for: Liqo fails when it comes in the midst "+
			"of the removal", a.name()), nil
	case virtual != nil:
		message := fmt.Sprintf("VirtualNode %s/%s is being removed", virtual.Namespace, virtual.Name)
		return false, message, a.removeVirtualNode(ctx, virtual)
	case node == nil:
		return true, "", nil
	}
	return a.removeLeftNode(ctx, node)
}

// removeLeftNode deletes a Node without a virtual node, once no virtual kubelet can register it again.
func (a *attempt) removeLeftNode(ctx context.Context, node *corev1.Node) (bool, string, error) {
	kubelet, err := a.kubelet(ctx)
	if err != nil {
		return false, "", err
	}
	if kubelet != "" {
		return false, fmt.Sprintf("Node %s is still there, and so is its virtual kubelet, pod %s", node.Name, kubelet), nil
	}
	if node.DeletionTimestamp == nil {
		if err := nodes.DeleteThis(ctx, a.local, node); err != nil {
			return false, "", fmt.Errorf("delete node: %w", err)
		}
	}
	return false, fmt.Sprintf("Node %s is still there", node.Name), nil
}

// kubelet returns the pod of the attempt's virtual kubelet that may still run, as namespace/name, or "". A pod that has
// been terminating for longer than graces.kubelet has lost its own node and no longer runs.
func (a *attempt) kubelet(ctx context.Context) (string, error) {
	var pods corev1.PodList
	if err := a.local.List(ctx, &pods, client.MatchingLabels{consts.VirtualNodeLabel: a.name()}); err != nil {
		return "", fmt.Errorf("list virtual kubelets of node %s: %w", a.name(), err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if !ended && !terminating(pod, a.graces.kubelet) {
			return pod.Namespace + "/" + pod.Name, nil
		}
	}
	return "", nil
}

// removeVirtualNode deletes the virtual node, and then the pods that Liqo waits for. These are the pods that were
// created since the Node was emptied, and DaemonSet pods: Liqo up to 1.1 also evicts DaemonSet pods, and its virtual
// kubelet never releases them.
func (a *attempt) removeVirtualNode(ctx context.Context, virtual *offloadingv1beta1.VirtualNode) error {
	if err := a.unmark(ctx, virtual); err != nil {
		return err
	}
	if virtual.DeletionTimestamp == nil {
		if err := nodes.DeleteThis(ctx, a.local, virtual); err != nil {
			return fmt.Errorf("delete virtual node: %w", err)
		}
		return nil
	}
	pods, err := nodes.Pods(ctx, a.local, a.name())
	for i := range pods {
		if nodes.Stays(pods[i]) && pods[i].DeletionTimestamp == nil {
			continue
		}
		if _, kept := nodes.Remove(ctx, a.local, &pods[i], true); kept != nil {
			err = errors.Join(err, fmt.Errorf("pod %s/%s: %w", pods[i].Namespace, pods[i].Name, kept))
			if nodes.Unanswered(kept) {
				break
			}
		}
	}
	return err
}

// sliceGone deletes the slice and reports done when it is gone on the consumer and, if it was ever there, on the
// provider.
func (a *attempt) sliceGone(ctx context.Context) (bool, string, error) {
	if err := a.locate(ctx); err != nil {
		return false, "", err
	}
	secrets, err := a.controlPlaneSecrets(ctx)
	if err != nil {
		return false, "", err
	}
	slice, err := a.slice(ctx)
	if client.IgnoreNotFound(err) != nil {
		return false, "", err
	}
	if err != nil {
		return a.absentOnProvider(ctx, secrets)
	}
	if deleted, message, err := a.deleteSlice(ctx, slice, secrets); !deleted || err != nil {
		return false, message, err
	}
	if terminating(slice, a.graces.release) {
		if err := a.releaseSlice(ctx, slice); err != nil {
			return false, "", err
		}
	}
	message := fmt.Sprintf("crd-replicator has not released ResourceSlice %s/%s yet", slice.Namespace, slice.Name)
	if _, status, err := a.apiServerStatus(ctx); err == nil {
		message += "; " + status
	}
	return false, message, nil
}

// deleteSlice deletes the slice on the consumer. If secrets is empty, crd-replicator has no kubeconfig to remove the
// provider's copy, and the slice is the only record of the copy. In this case deleteSlice first waits until the copy
// is gone, and the result message describes the wait.
func (a *attempt) deleteSlice(
	ctx context.Context, slice *authv1beta1.ResourceSlice, secrets []corev1.Secret,
) (deleted bool, message string, err error) {
	if slice.DeletionTimestamp != nil {
		return true, "", nil
	}
	if len(secrets) == 0 {
		if gone, message, err := a.remoteSliceGone(ctx, nil); !gone || err != nil {
			return false, message, err
		}
	}
	if err := nodes.DeleteThis(ctx, a.local, slice); err != nil {
		return false, "", fmt.Errorf("delete slice: %w", err)
	}
	return true, "", nil
}

// releaseSlice handles a provider that has removed our Tenant: it removes the provider's copy of the slice with our own
// credentials, and then the slice's finalizer.
func (a *attempt) releaseSlice(ctx context.Context, slice *authv1beta1.ResourceSlice) error {
	if err := a.locateRemote(ctx); err != nil {
		return err
	}
	if revoked, err := a.revoked(ctx); err != nil || !revoked {
		return err
	}
	if gone, _, err := a.removeOverCredentials(ctx); err != nil || !gone {
		return err
	}
	return a.release(ctx, slice)
}

// absentOnProvider reports whether the provider has no slice of the attempt any longer. It waits some time for the
// certificate to be gone, too. If the peering does not exist, it checks nothing, because a peering is removed only
// after the provider has none of our slices. Therefore an attempt that never made a slice can be returned when its
// provider is gone permanently.
func (a *attempt) absentOnProvider(ctx context.Context, secrets []corev1.Secret) (bool, string, error) {
	if len(secrets) == 0 {
		return true, "", nil
	}
	gone, message, err := a.remoteSliceGone(ctx, secrets)
	if !gone || err != nil {
		return gone, message, err
	}
	err = a.certificateGone(ctx)
	if errors.Is(err, backend.ErrUnreachable) && !a.hasLasted(a.graces.certificate) {
		return false, "", err
	}
	return true, "", nil // a certificate that stays on the provider does no harm
}
