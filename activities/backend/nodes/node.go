package nodes

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/template"
)

// Describe adds the state of an attempt's Node to the found objects of the attempt.
func Describe(found *fleet.Found, node *corev1.Node) {
	found.Node = true
	found.Ready, _ = Ready(node)
	found.Starting = Starting(node)
	found.Cordoned = backend.IsCordoned(node)
	found.Kept, found.KeptByOthers = backend.IsKept(node)
	found.Stamped = node.Spec.ProviderID == found.Attempt.InstanceID()
	found.Terminating = found.Terminating || node.DeletionTimestamp != nil
	template.Compare(found, node)
}

// Unfinished describes the first property that a Node lacks before Join can return. It returns "" when the Node is
// complete and accepts pods.
func Unfinished(node *corev1.Node, spec backend.NodeSpec) string {
	lacks := Incomplete(node, spec)
	if lacks == "" && Starting(node) {
		lacks = fmt.Sprintf("Node %s has the taint %s still", node.Name, corev1.TaintNodeNotReady)
	}
	return lacks
}

// Unsettled describes the first property that a Node lacks before it can be stamped again. It returns "" in two
// cases: the Node is finished (see Unfinished), or its kubelet, Kubernetes and therefore CA agree that it is not
// ready. The NoExecute taint not-ready proves this agreement, because Kubernetes sets it only after it has read the
// condition. The NoSchedule taint not-ready does not prove it, because each new Node has it.
func Unsettled(node *corev1.Node, spec backend.NodeSpec) string {
	if condition(node).Status == corev1.ConditionFalse && !tainted(node, corev1.TaintNodeUnreachable) &&
		slices.ContainsFunc(node.Spec.Taints, func(have corev1.Taint) bool {
			return have.Key == corev1.TaintNodeNotReady && have.Effect == corev1.TaintEffectNoExecute
		}) {
		return ""
	}
	return Unfinished(node, spec)
}

// Starting reports whether the Node has the taint that Kubernetes sets on each new Node, and removes only after the
// condition Ready is true. CA considers such a Node not started (CA utils/kubernetes/ready.go and clusterstate). CA
// plans the pending pods on an upcoming Node, and not on this Node.
func Starting(node *corev1.Node) bool { return tainted(node, corev1.TaintNodeNotReady) }

// Incomplete describes the first property that the Node still lacks. CA may count a Node only when the Node is
// complete. Incomplete returns "" when the Node is Ready, at least for its kubelet (see Starting), and has the spec's
// labels, taints and size.
func Incomplete(node *corev1.Node, spec backend.NodeSpec) string {
	if ready, why := Ready(node); !ready {
		return fmt.Sprintf("Node %s is not Ready: %s", node.Name, why)
	}
	// CA considers a Node with the first of these taints Ready, although the pod for which the Node was made cannot
	// run on it. Therefore CA would request another Node.
	for _, key := range []string{corev1.TaintNodeUnreachable, corev1.TaintNodeNetworkUnavailable} {
		if tainted(node, key) {
			return fmt.Sprintf("Node %s has the taint %s still", node.Name, key)
		}
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

func tainted(node *corev1.Node, key string) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(have corev1.Taint) bool { return have.Key == key })
}

// Ready reports whether the Node's condition Ready is True, and returns the condition's reason and message.
func Ready(node *corev1.Node) (ready bool, why string) {
	c := condition(node)
	if c.Type == "" {
		return false, "it has no condition Ready yet"
	}
	return c.Status == corev1.ConditionTrue, c.Reason + ": " + c.Message
}

// condition returns the Node's condition Ready, or a zero condition.
func condition(node *corev1.Node) (ready corev1.NodeCondition) {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c
		}
	}
	return ready
}

// Missing lists each resource of which less was granted than requested, for example "cpu 1 of 2". It returns "" when
// enough of each resource was granted.
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
