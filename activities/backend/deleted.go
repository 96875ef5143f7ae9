package backend

import (
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TaintToBeDeleted is CA's taint for a Node that it deletes. CA counts a Node with this taint as deleted, and not as
// unready (CA utils/taints).
const TaintToBeDeleted = "ToBeDeletedByClusterAutoscaler"

// TaintDeletionCandidate is the taint by which CA announces that it may delete a Node soon.
const TaintDeletionCandidate = "DeletionCandidateOfClusterAutoscaler"

// TaintAsDeleted adds TaintToBeDeleted to the Node's spec as CA does, and leaves an existing taint as it is. It reports
// whether it has changed the Node.
func TaintAsDeleted(node *corev1.Node, now time.Time) bool {
	if slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == TaintToBeDeleted }) {
		return false
	}
	node.Spec.Taints = append(slices.Clone(node.Spec.Taints), corev1.Taint{
		Key: TaintToBeDeleted, Value: strconv.FormatInt(now.Unix(), 10), Effect: corev1.TaintEffectNoSchedule,
	})
	return true
}
