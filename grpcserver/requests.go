package grpcserver

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helpers "k8s.io/component-helpers/resource"
)

// mostAsked is the largest amount of a resource that a pod is believed to ask for. Kubernetes takes 1e9999 for a
// quantity, too, which makes a price infinite, and a sum with it takes minutes.
const mostAsked = int64(1e18)

// requestsOf are what the pod asks for, each amount between 0 and mostAsked. It changes the pod.
func requestsOf(pod *corev1.Pod) corev1.ResourceList {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			bound(list[i].Resources.Requests)
		}
	}
	bound(pod.Spec.Overhead)
	if whole := pod.Spec.Resources; whole != nil {
		bound(whole.Requests)
	}
	return helpers.PodRequests(pod, helpers.PodResourcesOptions{})
}

func bound(list corev1.ResourceList) {
	for name, quantity := range list {
		switch n := quantity.AsApproximateFloat64(); {
		case n > float64(mostAsked):
			list[name] = *resource.NewQuantity(mostAsked, resource.DecimalSI)
		case n < 0:
			list[name] = resource.Quantity{}
		}
	}
}
