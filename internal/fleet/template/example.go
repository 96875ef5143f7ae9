package template

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Example is the Node as CA takes it for the shape of its group's next nodes: without the taints that come and go. The
// Node is the caller's.
func Example(node *corev1.Node) *corev1.Node {
	example := node.DeepCopy()
	example.Spec.Taints = slices.DeleteFunc(example.Spec.Taints, passing)
	return example
}
