package agent

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	nodeutil "k8s.io/component-helpers/node/util"
	resourcehelper "k8s.io/component-helpers/resource"
)

// Liqo's labels, on the objects that it makes (Liqo pkg/consts).
const (
	labelType      = "liqo.io/type"
	virtualNode    = "virtual-node"
	labelManagedBy = "liqo.io/managed-by"
	shadowPod      = "shadowpod"
)

// World is what the cluster has at one moment. Nothing in it is changed here.
type World struct {
	Nodes  []*corev1.Node
	Pods   []*corev1.Pod
	Slices []Slice
	// Tolerations are those of the pods that consumers bring: nodes with other taints are not for them.
	Tolerations []corev1.Toleration
}

// Free is what a consumer can have in all, its own holds included: what the usable nodes have, without what pods that
// Liqo did not bring ask for, what all other slices were granted, and the reserve. No amount is negative.
func (w World) Free(to Holder, reserve corev1.ResourceList) corev1.ResourceList {
	free, usable := w.allocatable()
	for _, pod := range w.Pods {
		_, placed := usable[pod.Spec.NodeName]
		if pod.Labels[labelManagedBy] == shadowPod || ended(pod) || pod.Spec.NodeName != "" && !placed {
			continue // is in a slice's grant, is over, or is on a node that is not counted
		}
		subtract(free, requests(pod))
	}
	for _, s := range w.Slices {
		if !s.heldBy(to) {
			subtract(free, s.Granted())
		}
	}
	subtract(free, reserve)
	for name, amount := range free {
		if amount.Sign() < 0 {
			free[name] = *resource.NewQuantity(0, amount.Format)
		}
	}
	return free
}

// Largest is what is left on the usable node with the most CPU left, whoever has brought the pods there: the largest
// pod that starts at once. nil without a usable node.
func (w World) Largest() corev1.ResourceList {
	_, left := w.allocatable()
	for _, pod := range w.Pods {
		if room, ok := left[pod.Spec.NodeName]; ok && !ended(pod) {
			subtract(room, requests(pod))
		}
	}
	var largest corev1.ResourceList
	for _, node := range w.Nodes {
		room, ok := left[node.Name]
		if ok && (largest == nil || room.Cpu().Cmp(*largest.Cpu()) > 0) {
			largest = room
		}
	}
	return largest
}

// Granted is what the slices of each consumer were granted.
func (w World) Granted() map[string]corev1.ResourceList {
	granted := map[string]corev1.ResourceList{}
	for _, s := range w.Slices {
		if consumer := s.Labels[labelOrigin]; s.Incoming() {
			if granted[consumer] == nil {
				granted[consumer] = corev1.ResourceList{}
			}
			add(granted[consumer], s.Granted())
		}
	}
	return granted
}

// allocatable is what the usable nodes have, together and each.
func (w World) allocatable() (all corev1.ResourceList, each map[string]corev1.ResourceList) {
	all, each = corev1.ResourceList{}, map[string]corev1.ResourceList{}
	for _, node := range w.Nodes {
		if !w.usable(node) {
			continue
		}
		each[node.Name] = maps.Clone(node.Status.Allocatable)
		add(all, node.Status.Allocatable)
	}
	return all, each
}

// usable reports whether pods can be brought to the node: Ready, neither cordoned nor tainted, and not itself lent by
// somebody else.
func (w World) usable(node *corev1.Node) bool {
	if node.Spec.Unschedulable || node.Labels[labelType] == virtualNode || node.DeletionTimestamp != nil ||
		slices.ContainsFunc(node.Spec.Taints, w.repels) {
		return false
	}
	_, ready := nodeutil.GetNodeCondition(&node.Status, corev1.NodeReady)
	return ready != nil && ready.Status == corev1.ConditionTrue
}

func (w World) repels(taint corev1.Taint) bool {
	return taint.Effect != corev1.TaintEffectPreferNoSchedule && !slices.ContainsFunc(w.Tolerations,
		func(t corev1.Toleration) bool { return t.ToleratesTaint(&taint) })
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// requests are what the scheduler counts for the pod, and its place among the node's pods.
func requests(pod *corev1.Pod) corev1.ResourceList {
	all := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	all[corev1.ResourcePods] = *resource.NewQuantity(1, resource.DecimalSI)
	return all
}

func add(to, amounts corev1.ResourceList) {
	for name, amount := range amounts {
		sum := to[name].DeepCopy()
		sum.Add(amount)
		to[name] = sum
	}
}

// subtract takes from what there is; what there is none of stays absent. Nothing is added by an amount that somebody
// has made negative.
func subtract(from, amounts corev1.ResourceList) {
	for name, amount := range amounts {
		if has, ok := from[name]; ok && amount.Sign() > 0 {
			has = has.DeepCopy()
			has.Sub(amount)
			from[name] = has
		}
	}
}
