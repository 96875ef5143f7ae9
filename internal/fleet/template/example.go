package template

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Example returns a copy of the Node without its temporary taints. CA removes the same taints when it uses an
// existing Node as the template of its group's next nodes. The caller may modify the copy.
func Example(node *corev1.Node) *corev1.Node {
	example := node.DeepCopy()
	example.Spec.Taints = slices.DeleteFunc(example.Spec.Taints, passing)
	return example
}
