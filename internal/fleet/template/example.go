package template

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Example returns the Node without the taints that change, as CA does when it uses an existing Node as the shape of its
// group's next nodes. The result is a copy that the caller may modify.
func Example(node *corev1.Node) *corev1.Node {
	example := node.DeepCopy()
	example.Spec.Taints = slices.DeleteFunc(example.Spec.Taints, passing)
	return example
}
