package backend

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// AnnotationScaleDown is an annotation of CA: CA removes no Node on which its value is "true" (CA utils/drain and
// core/scaledown/eligibility, ScaleDownDisabledKey). AnnotationKept marks a Node on which we have set
// AnnotationScaleDown.
const (
	AnnotationScaleDown = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
	AnnotationKept      = "liqo-autoscaler.io/kept-for-volumes"
)

// Volumes finds the volumes on providers, and keeps a Node for them. When the last virtual node of a provider is
// removed, Liqo deletes the remote namespaces and the volumes in them. The interface is optional: a backend without
// virtual nodes need not implement it.
type Volumes interface {
	// Volumes returns the bound PersistentVolumeClaims, as namespace/name. The key of the map is the id of the
	// provider that has the volumes.
	Volumes(ctx context.Context) (map[string][]string, error)
	// Keep sets or removes AnnotationScaleDown and AnnotationKept on the attempt's Node. An annotation that another
	// actor has set stays. A missing Node is success.
	Keep(ctx context.Context, attempt fleet.Attempt, kept bool) error
}

// SetKept changes the Node as Volumes.Keep describes, and reports whether it has changed the Node.
func SetKept(node *corev1.Node, kept bool) bool {
	_, ours := node.Annotations[AnnotationKept]
	_, byOthers := node.Annotations[AnnotationScaleDown]
	switch {
	case kept == ours, kept && byOthers:
		return false
	case kept:
		if node.Annotations == nil {
			node.Annotations = map[string]string{}
		}
		node.Annotations[AnnotationScaleDown], node.Annotations[AnnotationKept] = "true", "true"
	default:
		delete(node.Annotations, AnnotationScaleDown)
		delete(node.Annotations, AnnotationKept)
	}
	return true
}

// IsKept reports whether CA keeps the Node because of an annotation that we have set (byUs), or that another actor
// has set (byOthers).
func IsKept(node *corev1.Node) (byUs, byOthers bool) {
	_, ours := node.Annotations[AnnotationKept]
	kept := node.Annotations[AnnotationScaleDown] == "true"
	return ours, kept && !ours
}
