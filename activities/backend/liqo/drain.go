package liqo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/liqotech/liqo/pkg/consts"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// Drain empties the attempt's Node.
func (b *Backend) Drain(ctx context.Context, of fleet.Attempt, force bool, progress backend.Progress) error {
	a := b.attempt(of)
	w := &waiter{progress: progress, stubborn: true}
	err := w.until(ctx, backend.StageDrain, func(ctx context.Context) (bool, string, error) {
		return a.drained(ctx, force)
	})
	if err != nil {
		return fmt.Errorf("drain node %s: %w", of.ObjectName(), err)
	}
	return nil
}

// drained takes one step of a drain: it removes the mark, cordons the Node and removes the pods that are left.
func (a *attempt) drained(ctx context.Context, force bool) (bool, string, error) {
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
	if err := a.cordon(ctx, node, force); err != nil {
		return false, "", err
	}
	return a.removePods(ctx, force)
}

// removePods removes the pods that a drain is about; message says what each of them waits for.
func (a *attempt) removePods(ctx context.Context, force bool) (none bool, message string, err error) {
	pods, err := a.pods(ctx)
	pods = slices.DeleteFunc(pods, func(pod corev1.Pod) bool { return staying(pod) || over(pod) })
	if err != nil || len(pods) == 0 {
		return err == nil, "", err
	}
	var reasons []string
	for i := range pods {
		reason, err := a.remove(ctx, &pods[i], force)
		if unanswered(err) {
			return false, "", err
		}
		if err != nil { // the others can go all the same
			reason = "stays, " + err.Error()
		}
		reasons = append(reasons, fmt.Sprintf("%s/%s %s", pods[i].Namespace, pods[i].Name, reason))
	}
	return false, fmt.Sprintf("%d pod(s) left: %s", len(pods), few(reasons)), nil
}

// cordon cordons the Node and, with force, has CA count it as deleted.
func (a *attempt) cordon(ctx context.Context, node *corev1.Node, force bool) error {
	before := node.DeepCopy()
	node.Spec.Unschedulable = true
	tainted := force && backend.TaintAsDeleted(node, time.Now())
	if !tainted && before.Spec.Unschedulable {
		return nil
	}
	patch := client.MergeFrom(before)
	if tainted { // a merge patch replaces all taints: it fails when others were added since, and the next poll retries
		patch = client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	}
	if err := client.IgnoreNotFound(a.local.Patch(ctx, node, patch)); err != nil {
		return fmt.Errorf("cordon: %w", err)
	}
	return nil
}

// pods lists the pods on the Node.
func (a *attempt) pods(ctx context.Context) ([]corev1.Pod, error) {
	var found corev1.PodList
	if err := a.local.List(ctx, &found, client.MatchingFields{"spec.nodeName": a.name()}); err != nil {
		return nil, fmt.Errorf("list pods on node %s: %w", a.name(), err)
	}
	return found.Items, nil
}

// staying reports whether a drain leaves the pod alone: DaemonSet pods, which would come back, and mirror pods.
func staying(pod corev1.Pod) bool {
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	owner := metav1.GetControllerOf(&pod)
	return mirror || owner != nil && owner.Kind == "DaemonSet"
}

// over reports whether the pod's deletion is final and only a finalizer keeps it listed: it runs nowhere, and without
// the finalizer it would be gone by now.
func over(pod corev1.Pod) bool {
	return pod.DeletionTimestamp != nil && ptr.Deref(pod.DeletionGracePeriodSeconds, 1) == 0 && len(pod.Finalizers) > 0
}

// disown removes Liqo's own label from the pods that are over. Liqo finds the pods it waits for by that label, one
// virtual node after the other and without a timeout, so one dead finalizer would keep every virtual node of the
// cluster (Liqo virtualnode-controller/drain.go). A virtual kubelet labels no pod that terminates.
func (a *attempt) disown(ctx context.Context) (bool, string, error) {
	pods, err := a.pods(ctx)
	if err != nil {
		return false, "", err
	}
	for i := range pods {
		if _, waited := pods[i].Labels[consts.LocalPodLabelKey]; !waited || !over(pods[i]) {
			continue
		}
		err := mergePatch(ctx, a.local, &pods[i], map[string]any{
			"metadata": map[string]any{"uid": pods[i].UID, "labels": map[string]any{consts.LocalPodLabelKey: nil}},
		})
		if client.IgnoreNotFound(err) != nil {
			return false, "", fmt.Errorf("pod %s/%s is kept by %s only, and Liqo would wait for it: take its label %s off: %w",
				pods[i].Namespace, pods[i].Name, few(pods[i].Finalizers), consts.LocalPodLabelKey, err)
		}
	}
	return true, "", nil
}

// remove evicts one pod, or deletes it at once when force is set, and returns what the pod waits for.
func (a *attempt) remove(ctx context.Context, pod *corev1.Pod, force bool) (waits string, err error) {
	switch {
	case force:
		err = a.local.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
		waits = "is deleted"
	case pod.DeletionTimestamp != nil:
		return "is terminating", nil
	default:
		err = a.local.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
			DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}},
		})
		waits = "is evicted"
	}
	switch {
	case apierrors.IsTooManyRequests(err):
		return "is kept by a disruption budget", nil
	case apierrors.IsConflict(err), apierrors.IsNotFound(err): // another pod of that name, or none
		return "is gone", nil
	case err != nil:
		return "", fmt.Errorf("remove: %w", err)
	}
	return waits, nil
}

// unanswered reports whether the API server did not answer, so that further requests would fail as well.
func unanswered(err error) bool {
	return err != nil && apierrors.ReasonForError(err) == metav1.StatusReasonUnknown
}

// few is a list for people, cut after three.
func few(words []string) string {
	if len(words) > 3 {
		return strings.Join(words[:3], ", ") + ", ..."
	}
	return strings.Join(words, ", ")
}
