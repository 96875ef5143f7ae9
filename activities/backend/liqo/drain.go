package liqo

import (
	"context"
	"fmt"

	"github.com/liqotech/liqo/pkg/consts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/nodes"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Drain evicts or deletes the pods on the attempt's Node.
func (b *Backend) Drain(ctx context.Context, of fleet.Attempt, force bool, progress backend.Progress) error {
	a := b.attempt(of)
	w := &waiter{progress: progress, stubborn: true}
	err := w.until(ctx, backend.StageDrain, func(ctx context.Context) (bool, string, error) {
		return a.drainStep(ctx, force)
	})
	if err != nil {
		return fmt.Errorf("drain node %s: %w", of.ObjectName(), err)
	}
	return nil
}

// drainStep runs one step of a drain: it removes the mark, cordons the Node and removes the remaining pods.
func (a *attempt) drainStep(ctx context.Context, force bool) (bool, string, error) {
	if err := a.locate(ctx); err != nil {
		return false, "", err
	}
	virtual, err := a.virtualNode(ctx)
	if client.IgnoreNotFound(err) != nil {
		return false, "", err
	}
	if err == nil {
		if err := a.unmark(ctx, virtual); err != nil {
			return false, "", err
		}
	}
	node, err := a.node(ctx, virtual)
	if err != nil {
		return apierrors.IsNotFound(err), "", client.IgnoreNotFound(err)
	}
	if err := nodes.Cordon(ctx, a.local, node, force); err != nil {
		return false, "", err
	}
	return nodes.Empty(ctx, a.local, a.name(), force)
}

// unlabelEndedPods removes Liqo's own label from the pods that a finalizer keeps after their deletion. Liqo uses that
// label to find the pods that it waits for. It waits for one virtual node after another and without a timeout, so one
// finalizer that is never removed would keep every virtual node of the cluster (Liqo
// virtualnode-controller/drain.go). A virtual kubelet does not label a terminating pod again.
func (a *attempt) unlabelEndedPods(ctx context.Context) (bool, string, error) {
	pods, err := nodes.Pods(ctx, a.local, a.name())
	if err != nil {
		return false, "", err
	}
	for i := range pods {
		if _, waited := pods[i].Labels[consts.LocalPodLabelKey]; !waited || !nodes.HeldByFinalizer(pods[i]) {
			continue
		}
		err := nodes.MergePatch(ctx, a.local, &pods[i], map[string]any{
			"metadata": map[string]any{"uid": pods[i].UID, "labels": map[string]any{consts.LocalPodLabelKey: nil}},
		})
		if client.IgnoreNotFound(err) != nil {
			return false, "", fmt.Errorf("pod %s/%s is kept by %s only, and Liqo would wait for it: take its label %s off: %w",
				pods[i].Namespace, pods[i].Name, nodes.Few(pods[i].Finalizers), consts.LocalPodLabelKey, err)
		}
	}
	return true, "", nil
}
