package agent

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// randomPod returns a pod with containers, sidecars, init containers, an overhead and pod-level resources.
func randomPod(r *rand.Rand) *corev1.Pod {
	p := pod("p", "a", nil)
	p.Spec.Containers = nil
	for i := range 1 + r.IntN(3) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: fmt.Sprint("c", i), Image: "x",
			Resources: corev1.ResourceRequirements{Requests: atMost(r, 4, 8), Limits: atMost(r, 9, 9)}})
	}
	for i := range r.IntN(4) {
		c := corev1.Container{Name: fmt.Sprint("i", i), Resources: corev1.ResourceRequirements{Requests: atMost(r, 4, 8)}}
		if r.IntN(2) == 0 {
			c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		}
		p.Spec.InitContainers = append(p.Spec.InitContainers, c)
	}
	if r.IntN(3) == 0 {
		p.Spec.Overhead = amounts("100m", "64Mi")
	}
	if r.IntN(4) == 0 {
		p.Spec.Resources = &corev1.ResourceRequirements{Requests: amounts("7", "9Gi")}
	}
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		if r.IntN(3) == 0 {
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name,
				AllocatedResources: atMost(r, 5, 9), Resources: &corev1.ResourceRequirements{Requests: atMost(r, 5, 9)}})
		}
	}
	return p
}

// The agent keeps only some fields of a pod. These fields result in the same requests as the whole pod.
func TestTrimmedPodHasTheSameRequests(t *testing.T) {
	for r := range testkit.Cases(t) {
		p := randomPod(r)
		want := resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{UseStatusResources: true})
		got := resourcehelper.PodRequests(trimmed(t, p), resourcehelper.PodResourcesOptions{UseStatusResources: true})
		require.True(t, equality.Semantic.DeepEqual(want, got), "%v %v", want, got)
	}
}
