package nodes

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

// Unfinished says what the Node still lacks of what Join is to make, "" when nothing: it is Ready and has the spec's
// labels, taints and size.
func Unfinished(node *corev1.Node, spec backend.NodeSpec) string {
	if ready, why := Ready(node); !ready {
		return fmt.Sprintf("Node %s is not Ready: %s", node.Name, why)
	}
	if taint := stillTainted(node); taint != "" {
		return fmt.Sprintf("Node %s has the taint %s still", node.Name, taint)
	}
	for _, key := range slices.Sorted(maps.Keys(spec.Labels)) {
		if got, there := node.Labels[key]; !there || got != spec.Labels[key] {
			return fmt.Sprintf("Node %s does not have its label %s yet", node.Name, key)
		}
	}
	for _, taint := range spec.Taints {
		if !slices.ContainsFunc(node.Spec.Taints, func(have corev1.Taint) bool {
			return have.Key == taint.Key && have.Value == taint.Value && have.Effect == taint.Effect
		}) {
			return fmt.Sprintf("Node %s does not have its taint %s yet", node.Name, taint.ToString())
		}
	}
	if short := Missing(spec.Shape, node.Status.Allocatable); short != "" {
		return fmt.Sprintf("Node %s does not have its size yet: %s", node.Name, short)
	}
	return ""
}

// stillTainted is what is left of the taints of Kubernetes' node lifecycle controller, which takes them off only after
// the condition has turned. CA holds a Node with the taint unreachable for Ready (CA utils/kubernetes/ready.go):
// stamped now, it would seem to have no room for the pod it was bought for.
func stillTainted(node *corev1.Node) string {
	for _, taint := range node.Spec.Taints {
		switch taint.Key {
		case corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeNetworkUnavailable:
			return taint.ToString()
		}
	}
	return ""
}

// Ready is the Node's condition Ready, and its own words when it is not True.
func Ready(node *corev1.Node) (ready bool, why string) {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue, condition.Reason + ": " + condition.Message
		}
	}
	return false, "it has no condition Ready yet"
}

// Missing says what of an ask was not granted, as "cpu 1 of 2", or "" when all was.
func Missing(ask, grant corev1.ResourceList) string {
	var short []string
	for name, want := range ask {
		if got := grant[name]; got.Cmp(want) < 0 {
			short = append(short, fmt.Sprintf("%s %s of %s", name, got.String(), want.String()))
		}
	}
	slices.Sort(short)
	return strings.Join(short, ", ")
}
