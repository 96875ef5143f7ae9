package agent

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	nodeutil "k8s.io/component-helpers/node/util"
)

// These constants are the labels that Liqo sets on the objects that it creates (Liqo pkg/consts and
// pkg/virtualKubelet/forge).
const (
	labelType      = "liqo.io/type"
	virtualNode    = "virtual-node"
	labelManagedBy = "liqo.io/managed-by"
	shadowPod      = "shadowpod"
	labelPodOrigin = "offloading.liqo.io/origin" // the consumer that owns the pod
)

// World is the state of the cluster at one moment. This package never changes the objects in a World.
type World struct {
	Nodes  []*corev1.Node
	Pods   []*corev1.Pod
	Slices []Slice
	// Tolerations are the tolerations of consumers' pods. Nodes with taints that these pods do not tolerate are not
	// usable.
	Tolerations []corev1.Toleration
	// GrowsTo and GrowsNode have the same meaning as in Config.
	GrowsTo, GrowsNode corev1.ResourceList
}

// Free returns the amounts that one hub (the Holder to) can hold in total, including its present holds. They are the
// capacity for all consumers minus the amounts in use, except the holds of this hub. No amount is negative.
func (w World) Free(to Holder, reserve corev1.ResourceList) corev1.ResourceList {
	free := w.capacity(reserve)
	for _, amounts := range w.usedExceptHolds(to) {
		subtract(free, amounts)
	}
	return nonNegative(free)
}

// capacity returns the capacity for all consumers together. It is the allocatable amount of the usable nodes, minus
// the reserve and minus the requests of pods that Liqo did not create. If GrowsTo has a larger amount of a resource,
// this amount counts instead. The two amounts are not added, because GrowsTo already includes the nodes that the
// autoscaler has added.
func (w World) capacity(reserve corev1.ResourceList) corev1.ResourceList {
	whole, usable := w.allocatable()
	for _, pod := range w.Pods {
		if asks := requests(pod); !isOffloaded(pod) && w.occupies(pod, asks, usable) {
			subtract(whole, asks)
		}
	}
	subtract(whole, reserve)
	raise(whole, w.GrowsTo)
	return whole
}

// usedExceptHolds returns the amounts that each consumer uses, except the holds of one hub (the Holder to). A
// consumer uses the amounts of its granted slices, or the requests of its pods if these requests are larger. They can
// be larger because pods still run for a while after their slice is deleted.
func (w World) usedExceptHolds(to Holder) map[string]corev1.ResourceList {
	held, own := w.Granted(), corev1.ResourceList{}
	for consumer, used := range w.used() {
		if held[consumer] == nil {
			held[consumer] = corev1.ResourceList{}
		}
		raise(held[consumer], used)
	}
	for _, s := range w.Slices {
		if s.heldBy(to) {
			add(own, s.Granted())
		}
	}
	subtract(held[to.Consumer], own)
	return held
}

// used returns the sum of the requests of each consumer's pods in this cluster.
func (w World) used() map[string]corev1.ResourceList {
	used := map[string]corev1.ResourceList{}
	_, usable := w.allocatable()
	for _, pod := range w.Pods {
		if asks := requests(pod); isOffloaded(pod) && w.occupies(pod, asks, usable) {
			consumer := pod.Labels[labelPodOrigin]
			if used[consumer] == nil {
				used[consumer] = corev1.ResourceList{}
			}
			add(used[consumer], asks)
		}
	}
	return used
}

// Largest returns the free amounts of the usable node with the most free CPU. A pod that requests more CPU cannot
// start immediately. The free amounts are the allocatable amounts of the node minus the requests of all its pods.
// Largest returns nil if no node is usable.
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

// maxLargest is the maximum number of nodes that largestNodes returns.
const maxLargest = 4

// largestNodes returns the allocatable amounts of the largest usable nodes, with only the resources that are offered.
// It returns at most maxLargest nodes, those with the most CPU first. It omits a node if another node has at least
// the same amount of every resource.
func (w World) largestNodes(offered corev1.ResourceList) (largest []corev1.ResourceList) {
	_, each := w.allocatable()
	if len(w.GrowsNode) > 0 {
		each[""] = maps.Clone(w.GrowsNode) // no Node has an empty name
	}
	for _, name := range slices.Sorted(maps.Keys(each)) {
		node := each[name]
		maps.DeleteFunc(node, func(name corev1.ResourceName, _ resource.Quantity) bool { return !has(offered, name) })
		within := func(other corev1.ResourceList) bool { return missing(other, node) == "" }
		if slices.ContainsFunc(largest, within) {
			continue
		}
		largest = slices.DeleteFunc(largest, func(other corev1.ResourceList) bool { return missing(node, other) == "" })
		largest = append(largest, node)
	}
	slices.SortStableFunc(largest, func(a, b corev1.ResourceList) int { return b.Cpu().Cmp(*a.Cpu()) })
	return largest[:min(len(largest), maxLargest)]
}

// Granted returns the granted amounts of each consumer's slices.
func (w World) Granted() map[string]corev1.ResourceList {
	granted := map[string]corev1.ResourceList{}
	for _, s := range w.Slices {
		if amounts := s.Granted(); amounts != nil || s.Incoming() {
			if granted[s.holder()] == nil {
				granted[s.holder()] = corev1.ResourceList{}
			}
			add(granted[s.holder()], amounts)
		}
	}
	return granted
}

// allocatable returns the allocatable amounts of the usable nodes, in total and by node.
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

// architecture returns the value of the label kubernetes.io/arch if all usable nodes have the same value. Otherwise,
// and without usable nodes, it returns "".
func (w World) architecture() (name string) {
	first := true
	for _, node := range w.Nodes {
		if !w.usable(node) {
			continue
		}
		if has := node.Labels[corev1.LabelArchStable]; first {
			name, first = has, false
		} else if has != name {
			return ""
		}
	}
	return name
}

// usable reports whether consumers' pods can run on the node. Such a node is Ready, is not cordoned, has only tolerated
// taints, and is not a virtual node.
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
