package backend

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// SetCordon changes the Node as Cordons.Cordon describes, and reports whether it has changed the Node. It does not
// change a Node that another actor has already cordoned.
func SetCordon(node *corev1.Node, cordoned bool) bool {
	_, ours := node.Annotations[AnnotationCordoned]
	switch {
	case cordoned == ours:
		return false
	case cordoned && node.Spec.Unschedulable:
		return false
	case cordoned:
		if node.Annotations == nil {
			node.Annotations = map[string]string{}
		}
		node.Annotations[AnnotationCordoned] = "true"
		node.Spec.Unschedulable = true
		return true
	case isBeingRemoved(node):
		return false
	default:
		delete(node.Annotations, AnnotationCordoned)
		node.Spec.Unschedulable = false
		return true
	}
}

// isBeingRemoved reports whether CA, or this system, is removing the Node.
func isBeingRemoved(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
		return taint.Key == TaintToBeDeleted || taint.Key == TaintDeletionCandidate
	})
}

// IsCordoned reports whether the Node is cordoned by us.
func IsCordoned(node *corev1.Node) bool {
	_, ours := node.Annotations[AnnotationCordoned]
	return ours && node.Spec.Unschedulable
}
