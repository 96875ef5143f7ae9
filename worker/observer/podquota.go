package observer

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/boundpod"
)

// Liqo's quota of a slice counts each pod until the pod is deleted (Liqo's pkg/webhooks/shadowpod does not check the
// phase). Kubernetes' scheduler counts a pod only until it ends. So on a full node the scheduler binds the next pod of
// a Job, and the provider refuses it as long as the Job's previous pod exists.

// finalizerJob is the finalizer of a pod that the Job controller has not counted yet (k8s.io/api/batch/v1,
// JobTrackingFinalizer).
const finalizerJob = "batch.kubernetes.io/job-tracking"

// share holds a pod's share of the node's quota. It keeps only the fields that identify or sort the pod, because a
// list may contain thousands of pods, and one pod may have a size of 1 MiB.
type share struct {
	pod      *corev1.Pod
	requests corev1.ResourceList
}

// shareOf returns the share of a pod.
func shareOf(pod *corev1.Pod) share {
	return share{
		pod: &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
				ResourceVersion: pod.ResourceVersion, CreationTimestamp: pod.CreationTimestamp},
			Spec: corev1.PodSpec{NodeName: pod.Spec.NodeName},
		},
		requests: requestsOf(pod),
	}
}

// requestsOf returns the amounts that the pod requests.
func requestsOf(pod *corev1.Pod) corev1.ResourceList {
	return resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
}

// hold adds a pod that the provider has accepted to the used quota of the node. It also records an ended pod of a
// Job, because freeQuota may delete the pod.
func (n *virtualNode) hold(pod *corev1.Pod) {
	requests := requestsOf(pod)
	if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
		sum(n.live, requests)
		return
	}
	sum(n.held, requests)
	if owner := metav1.GetControllerOf(pod); owner != nil && owner.Kind == "Job" && pod.DeletionTimestamp == nil &&
		!slices.Contains(pod.Finalizers, finalizerJob) {
		n.ended = append(n.ended, shareOf(pod))
	}
}

// refusal returns the verdict about a pod that the provider has not accepted, and the reason for the verdict. The
// provider's own message is in the pod's Events, which the observer does not read.
func (n *virtualNode) refusal(pod share) (boundpod.Verdict, string) {
	switch {
	case !n.short(pod):
		return boundpod.RefusedByProvider, "the provider has not accepted it: liqo-autoscaler explain pod shows the reason"
	case n.fits(pod):
		return boundpod.HoldsNoQuota, fmt.Sprintf("pods that have ended still use the node's quota, %d of them of Jobs",
			len(n.ended))
	}
	return boundpod.HoldsNoQuota, "the node's quota is used up"
}

// short reports whether the remaining quota is too small for the pod.
func (n *virtualNode) short(pod share) bool { return !n.within(pod, n.live, n.held) }

// fits reports whether the quota would suffice for the pod if all ended pods were deleted.
func (n *virtualNode) fits(pod share) bool { return n.within(pod, n.live) }

// within reports whether the pod fits into the node's quota in addition to the used amounts.
func (n *virtualNode) within(pod share, used ...corev1.ResourceList) bool {
	for name, amount := range pod.requests {
		room, limited := n.room[name]
		amount = amount.DeepCopy() // Add changes an amount in place when it is large
		for _, u := range used {
			amount.Add(u[name])
		}
		if limited && amount.Cmp(room) > 0 {
			return false
		}
	}
	return true
}

// freeQuota deletes ended pods of Jobs, oldest first, until the node's quota suffices for one refused pod. It acts
// only for a pod that was also refused in the previous round. It deletes only pods that their Job has already counted.
// Kubernetes' own garbage collection of ended pods follows the same rule.
func (o *Observer) freeQuota(ctx context.Context, lister backend.OffloadedPods, node *virtualNode,
	since map[types.UID]time.Time) {
	next := slices.IndexFunc(node.unaccepted, func(refused share) bool {
		first, known := o.seen.since[refused.pod.UID]
		return known && first.Equal(since[refused.pod.UID]) && node.fits(refused)
	})
	if next < 0 {
		return
	}
	slices.SortFunc(node.ended, func(a, b share) int {
		return a.pod.CreationTimestamp.Compare(b.pod.CreationTimestamp.Time)
	})
	for _, ended := range node.ended {
		pod := ended.pod
		if !node.short(node.unaccepted[next]) || ctx.Err() != nil {
			return
		}
		if err := lister.RemoveEndedPod(ctx, pod); err != nil {
			o.Logger.Warn("cannot delete an ended pod that uses quota; the next round tries again", "error", err)
			return
		}
		o.Logger.Info("deleted an ended pod of a Job, because another pod could not start without its quota", "pod",
			pod.Namespace+"/"+pod.Name, "node", pod.Spec.NodeName, "provider", node.provider)
		subtract(node.held, ended.requests)
		if o.Events != nil {
			o.Events.Record(activities.Event{Reason: activities.ReasonEndedPodRemoved, Node: pod.Spec.NodeName,
				Message: fmt.Sprintf("pod %s/%s of a Job had ended, and another pod could not start on %s without its quota",
					pod.Namespace, pod.Name, node.provider)})
		}
	}
}

func sum(total, more corev1.ResourceList) {
	for name, amount := range more {
		have := total[name]
		have.Add(amount)
		total[name] = have
	}
}

func subtract(total, less corev1.ResourceList) {
	for name, amount := range less {
		have := total[name]
		have.Sub(amount)
		total[name] = have
	}
}
