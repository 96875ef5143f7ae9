package agent

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
	scheduling "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// isOffloaded reports whether Liqo created the pod for a consumer.
func isOffloaded(pod *corev1.Pod) bool { return pod.Labels[labelManagedBy] == shadowPod }

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// requests returns the amounts that the scheduler reserves for the pod, plus 1 for the resource pods. While a pod is
// resized in place, the larger of the old and new amounts counts. If the resize is infeasible, the allocated amounts
// count.
func requests(pod *corev1.Pod) corev1.ResourceList {
	all := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{UseStatusResources: true})
	all[corev1.ResourcePods] = *resource.NewQuantity(1, resource.DecimalSI)
	return all
}

// occupies reports whether the pod uses capacity of the usable nodes. It returns true for a pod on a usable node. For
// a pod without a node, it returns true if the pod has no scheduling gates and would fit on a usable node that is
// empty. The parameter `requests` contains the pod's requests.
func (w World) occupies(pod *corev1.Pod, requests corev1.ResourceList, usable map[string]corev1.ResourceList) bool {
	if ended(pod) {
		return false
	}
	if pod.Spec.NodeName != "" {
		_, runs := usable[pod.Spec.NodeName]
		return runs
	}
	return len(pod.Spec.SchedulingGates) == 0 && w.hasNodeFor(pod, requests, usable)
}

// hasNodeFor reports whether the pod could start on one of the usable nodes if that node were empty.
func (w World) hasNodeFor(pod *corev1.Pod, requests corev1.ResourceList, usable map[string]corev1.ResourceList) bool {
	affinity := nodeaffinity.GetRequiredNodeAffinity(pod)
	return slices.ContainsFunc(w.Nodes, func(node *corev1.Node) bool {
		if _, ok := usable[node.Name]; !ok || !covers(node.Status.Allocatable, requests) {
			return false
		}
		_, repelled := scheduling.FindMatchingUntoleratedTaint(node.Spec.Taints, pod.Spec.Tolerations, isHard)
		matches, err := affinity.Match(node)
		return !repelled && matches && err == nil
	})
}

// isHard reports whether the taint excludes pods. The effect PreferNoSchedule does not.
func isHard(taint *corev1.Taint) bool { return taint.Effect != corev1.TaintEffectPreferNoSchedule }
