package manifest

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
)

// setDefaults sets each missing request to the limit of the resource. The API server does this when it creates a pod,
// and Cluster Autoscaler does it for a pod that it creates in memory (Kubernetes pkg/apis/core/v1/defaults.go,
// SetDefaults_Pod).
func setDefaults(pod *corev1.Pod) {
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for n := range containers {
			r := &containers[n].Resources
			r.Requests = withLimits(r.Requests, r.Limits)
		}
	}
	if whole := pod.Spec.Resources; whole != nil && len(whole.Limits) > 0 {
		requests := resource.AggregateContainerRequests(pod, resource.PodResourcesOptions{})
		for name, limit := range whole.Limits {
			if _, of := requests[name]; !of {
				whole.Requests = withLimits(whole.Requests, corev1.ResourceList{name: limit})
			}
		}
	}
}

// withLimits returns the requests, completed by the limits of resources that have no request.
func withLimits(requests, limits corev1.ResourceList) corev1.ResourceList {
	for name, limit := range limits {
		if requests == nil {
			requests = corev1.ResourceList{}
		}
		if _, given := requests[name]; !given {
			requests[name] = limit
		}
	}
	return requests
}
