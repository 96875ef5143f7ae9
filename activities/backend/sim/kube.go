package sim

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kubeTime returns a time in the precision of the API server: whole seconds.
func kubeTime(t time.Time) metav1.Time { return metav1.NewTime(t.UTC().Truncate(time.Second)) }

// deleteNode marks the Node as terminating.
func deleteNode(node *corev1.Node, now time.Time) {
	if node.DeletionTimestamp == nil {
		at := kubeTime(now)
		node.DeletionTimestamp = &at
	}
}
