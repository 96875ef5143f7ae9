package explain

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LiqoToleration is the toleration that Liqo's webhook adds to the pods of an offloaded namespace.
var LiqoToleration = corev1.Toleration{Key: liqoTaint, Operator: corev1.TolerationOpExists}

// consumes contains the annotations by which a pod uses the capacity of a ProvisioningRequest, the newer annotation
// first (CA processors/provreq/pods_filter.go).
var consumes = []string{"autoscaling.x-k8s.io/consume-provisioning-request",
	"cluster-autoscaler.kubernetes.io/consume-provisioning-request"}

const (
	assumedCreated = "the pod's namespace is offloaded, and Liqo's webhook adds the toleration of virtual nodes to the pod"

	inMemoryFitsNowhere = "no node group fits, because Cluster Autoscaler creates such pods in its memory, where Liqo's " +
		"webhook does not add the toleration of virtual nodes: write tolerations: [{key: " + liqoTaint +
		", operator: Exists}] into the pod spec of the template"
	unlessDryRun = "; from 1.36 on Cluster Autoscaler sends the pods of a buffer through the webhook in a dry run " +
		"(--capacity-buffer-pod-dry-run-enabled), which adds the toleration if the namespace is offloaded"
)

// ToleratesVirtualNodes reports whether the pod has the toleration that Liqo adds in offloaded namespaces.
func ToleratesVirtualNodes(pod *corev1.Pod) bool {
	taint := corev1.Taint{Key: liqoTaint, Value: "true", Effect: corev1.TaintEffectNoExecute}
	return slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool { return t.ToleratesTaint(&taint) })
}

// neverRequested returns a reason for which Cluster Autoscaler requests no node for the pod, independently of the
// pod's requests. It returns "" if Cluster Autoscaler may request one.
func (w World) neverRequested() string {
	owner := metav1.GetControllerOf(w.Pod)
	switch {
	case w.Planned != nil && w.Planned.Never != "":
		return w.Planned.Never
	case owner != nil && owner.Kind == "DaemonSet":
		return fmt.Sprintf("it belongs to DaemonSet %s, and Cluster Autoscaler requests no node for pods of a DaemonSet",
			owner.Name)
	}
	for _, key := range consumes {
		if request := w.Pod.Annotations[key]; request != "" {
			return fmt.Sprintf("it consumes ProvisioningRequest %s (annotation %s): Cluster Autoscaler requests nodes for the "+
				"request, and none for this pod", request, key)
		}
	}
	return ""
}
