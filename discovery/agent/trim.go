package agent

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// trim returns the object without the fields that the agent does not read. This saves memory, because a cluster may
// have many pods.
func trim(object any) (any, error) {
	switch o := object.(type) {
	case *corev1.Pod:
		return trimPod(o), nil
	case *corev1.Node:
		return &corev1.Node{
			ObjectMeta: meta(o.ObjectMeta), Spec: corev1.NodeSpec{Unschedulable: o.Spec.Unschedulable, Taints: o.Spec.Taints},
			Status: corev1.NodeStatus{Allocatable: o.Status.Allocatable, Conditions: o.Status.Conditions},
		}, nil
	case *unstructured.Unstructured:
		return trimLiqo(o), nil
	}
	return object, nil
}

// trimLiqo returns a ResourceSlice or a Tenant with only the fields that the agent reads. This bounds the memory,
// because a consumer may write large values into any field.
func trimLiqo(o *unstructured.Unstructured) *unstructured.Unstructured {
	kept := &unstructured.Unstructured{Object: map[string]any{}}
	for _, path := range [][]string{{"apiVersion"}, {"kind"}, {"metadata", "name"}, {"metadata", "namespace"},
		{"metadata", "uid"}, {"metadata", "resourceVersion"}, {"metadata", "creationTimestamp"},
		{"metadata", "deletionTimestamp"}, {"metadata", "labels", labelOurs}, {"metadata", "labels", labelHub},
		{"spec", "consumerClusterID"}, {"spec", "class"}, {"spec", "clusterID"}, {"spec", "tenantCondition"}} {
		if value, ok, _ := unstructured.NestedString(o.Object, path...); ok {
			_ = unstructured.SetNestedField(kept.Object, value, path...)
		}
	}
	for _, part := range []string{"spec", "status"} {
		amounts, ok, _ := unstructured.NestedMap(o.Object, part, "resources")
		if ok && len(amounts) <= maxResources+1 { // +1: readable must still detect that the bound is exceeded
			_ = unstructured.SetNestedMap(kept.Object, amounts, part, "resources")
		}
	}
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	var short []any
	for _, c := range conditions[:min(len(conditions), maxConditions)] {
		if fields, ok := c.(map[string]any); ok {
			short = append(short, map[string]any{"type": fields["type"], "status": fields["status"]})
		}
	}
	if short != nil {
		_ = unstructured.SetNestedSlice(kept.Object, short, "status", "conditions")
	}
	return kept
}

// maxConditions bounds the number of a slice's conditions that trimLiqo keeps. Liqo writes two conditions.
const maxConditions = 16

// trimPod returns the pod with only the fields from which its requests are computed. If the pod has no node, the
// result also has the fields that determine on which nodes the pod can start.
func trimPod(o *corev1.Pod) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: meta(o.ObjectMeta),
		Spec: corev1.PodSpec{
			NodeName: o.Spec.NodeName, Containers: requestsOf(o.Spec.Containers),
			InitContainers: requestsOf(o.Spec.InitContainers), Overhead: o.Spec.Overhead, Resources: o.Spec.Resources,
		},
		Status: corev1.PodStatus{
			Phase: o.Status.Phase, Conditions: resizes(o.Status.Conditions),
			ContainerStatuses:     allocated(o.Status.ContainerStatuses),
			InitContainerStatuses: allocated(o.Status.InitContainerStatuses),
		},
	}
	if o.Spec.NodeName == "" {
		pod.Spec.SchedulingGates, pod.Spec.NodeSelector = o.Spec.SchedulingGates, o.Spec.NodeSelector
		pod.Spec.Tolerations = o.Spec.Tolerations
		if o.Spec.Affinity != nil {
			pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: o.Spec.Affinity.NodeAffinity}
		}
	}
	return pod
}

func meta(o metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: o.Name, Namespace: o.Namespace, UID: o.UID, ResourceVersion: o.ResourceVersion,
		Labels: o.Labels, DeletionTimestamp: o.DeletionTimestamp}
}

func requestsOf(containers []corev1.Container) (out []corev1.Container) {
	for _, c := range containers {
		out = append(out, corev1.Container{Name: c.Name, RestartPolicy: c.RestartPolicy,
			Resources: corev1.ResourceRequirements{Requests: c.Resources.Requests}})
	}
	return out
}

// allocated returns the statuses of containers with only the name, the requests, and the amounts that the kubelet has
// allocated.
func allocated(containers []corev1.ContainerStatus) (out []corev1.ContainerStatus) {
	for _, c := range containers {
		if c.Resources != nil {
			out = append(out, corev1.ContainerStatus{Name: c.Name, AllocatedResources: c.AllocatedResources,
				Resources: &corev1.ResourceRequirements{Requests: c.Resources.Requests}})
		}
	}
	return out
}

// resizes returns only the conditions about a resize that is deferred or infeasible.
func resizes(conditions []corev1.PodCondition) (out []corev1.PodCondition) {
	for _, c := range conditions {
		if c.Type == corev1.PodResizePending {
			out = append(out, c)
		}
	}
	return out
}
