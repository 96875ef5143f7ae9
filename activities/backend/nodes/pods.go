package nodes

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

// Cordon cordons the Node. With force it also sets CA's taint for deleted Nodes (backend.TaintToBeDeleted). A missing
// Node is success.
func Cordon(ctx context.Context, cluster client.Client, node *corev1.Node, force bool) error {
	before := node.DeepCopy()
	node.Spec.Unschedulable = true
	tainted := force && backend.TaintAsDeleted(node, time.Now())
	if !tainted && before.Spec.Unschedulable {
		return nil
	}
	patch := client.MergeFrom(before)
	if tainted { // a merge patch replaces all taints: it fails if a taint was added since, and the next poll retries
		patch = client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	}
	if err := client.IgnoreNotFound(cluster.Patch(ctx, node, patch)); err != nil {
		return fmt.Errorf("cordon: %w", err)
	}
	return nil
}

// Pods lists the pods on the Node.
func Pods(ctx context.Context, cluster client.Client, node string) ([]corev1.Pod, error) {
	var found corev1.PodList
	if err := cluster.List(ctx, &found, client.MatchingFields{"spec.nodeName": node}); err != nil {
		return nil, fmt.Errorf("list pods on node %s: %w", node, err)
	}
	return found.Items, nil
}

// Empty starts the removal of the pods that a drain must remove, and does not wait until they are gone. The result
// none is true if no such pod is left. The result message lists the reasons why some of the pods remain.
func Empty(ctx context.Context, cluster client.Client, node string, force bool) (none bool, message string, err error) {
	pods, err := Pods(ctx, cluster, node)
	pods = slices.DeleteFunc(pods, func(pod corev1.Pod) bool { return Stays(pod) || HeldByFinalizer(pod) })
	if err != nil || len(pods) == 0 {
		return err == nil, "", err
	}
	var reasons []string
	for i := range pods {
		reason, err := Remove(ctx, cluster, &pods[i], force)
		if Unanswered(err) {
			return false, "", err
		}
		if err != nil { // the removal of the remaining pods continues
			reason = "stays, " + err.Error()
		}
		reasons = append(reasons, fmt.Sprintf("%s/%s %s", pods[i].Namespace, pods[i].Name, reason))
	}
	return false, fmt.Sprintf("%d pod(s) left: %s", len(pods), Few(reasons)), nil
}

// Stays reports whether a drain leaves the pod on the Node: a DaemonSet pod, which would be created again, or a mirror
// pod.
func Stays(pod corev1.Pod) bool {
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	owner := metav1.GetControllerOf(&pod)
	return mirror || owner != nil && owner.Kind == "DaemonSet"
}

// HeldByFinalizer reports whether only a finalizer keeps the pod: its deletion is final and it no longer runs.
func HeldByFinalizer(pod corev1.Pod) bool {
	return pod.DeletionTimestamp != nil && ptr.Deref(pod.DeletionGracePeriodSeconds, 1) == 0 && len(pod.Finalizers) > 0
}

// Remove evicts one pod, or deletes it immediately when force is set. The result waits describes why the pod still
// exists.
func Remove(ctx context.Context, cluster client.Client, pod *corev1.Pod, force bool) (waits string, err error) {
	switch {
	case force:
		err = cluster.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
		waits = "is deleted"
	case pod.DeletionTimestamp != nil:
		return "is terminating", nil
	default:
		err = cluster.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
			DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}},
		})
		waits = "is evicted"
	}
	switch {
	case apierrors.IsTooManyRequests(err):
		return "is kept by a disruption budget", nil
	case apierrors.IsConflict(err), apierrors.IsNotFound(err): // another pod has that name, or the pod is gone
		return "is gone", nil
	case err != nil:
		return "", fmt.Errorf("remove: %w", err)
	}
	return waits, nil
}

// Unanswered reports whether err means that the API server did not answer. Further requests would then fail as well.
func Unanswered(err error) bool {
	return err != nil && apierrors.ReasonForError(err) == metav1.StatusReasonUnknown
}

// Few joins the entries of a list for display. After three entries it adds "..." for the rest.
func Few(words []string) string {
	if len(words) > 3 {
		return strings.Join(words[:3], ", ") + ", ..."
	}
	return strings.Join(words, ", ")
}
