// Package fit explains why a pod does not fit on an empty node. It applies the rules of the scheduler and of Cluster
// Autoscaler's simulation, except constraints that depend on other pods, such as anti-affinity and topology spread.
package fit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-helpers/resource"
	scheduling "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// Misfit is one reason for which a pod does not fit on a node. It has the path of the pod's field and a text.
type Misfit struct {
	Field  string `json:"field"`
	Reason string `json:"reason"`
}

func (m Misfit) String() string { return m.Field + ": " + m.Reason }

// Misfits returns all reasons for which the pod does not fit on the node: first the reasons from Selectors, then the
// reasons from Besides.
func Misfits(pod *corev1.Pod, node *corev1.Node) []Misfit {
	return append(Selectors(pod, node), Besides(pod, node)...)
}

// Besides returns the reasons that do not depend on the node's labels. These are taints that the pod does not
// tolerate, and requests that exceed the node's allocatable amounts.
func Besides(pod *corev1.Pod, node *corev1.Node) (out []Misfit) {
	hard := func(t *corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
	}
	for _, taint := range node.Spec.Taints {
		if hard(&taint) && !scheduling.TolerationsTolerateTaint(pod.Spec.Tolerations, &taint) {
			out = append(out, Misfit{"spec.tolerations", "no toleration for the taint " + taint.ToString()})
		}
	}
	requests := resource.PodRequests(pod, resource.PodResourcesOptions{})
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		want, have := requests[name], node.Status.Allocatable[name]
		if want.Sign() > 0 && want.Cmp(have) > 0 {
			out = append(out, Misfit{"resources.requests",
				fmt.Sprintf("the pod requests %s %s, a node has %s", name, want.String(), have.String())})
		}
	}
	return out
}

// PerNode returns the number of pods with the requests of this pod that fit on an empty node, but at least 1.
func PerNode(pod *corev1.Pod, node *corev1.Node) int {
	pods := node.Status.Allocatable[corev1.ResourcePods]
	count := pods.Value()
	for name, want := range resource.PodRequests(pod, resource.PodResourcesOptions{}) {
		if have := node.Status.Allocatable[name]; want.Sign() > 0 {
			count = min(count, units(name, have)/units(name, want))
		}
	}
	return int(max(count, 1))
}

// units returns the amount in the unit in which the scheduler counts the resource: millicores for CPU, and whole
// units otherwise.
func units(name corev1.ResourceName, q apiresource.Quantity) int64 {
	if name == corev1.ResourceCPU {
		return q.MilliValue()
	}
	return q.Value()
}

// Selectors returns the reasons that depend on the node's labels. They come from the pod's node selector and its
// required node affinity.
func Selectors(pod *corev1.Pod, node *corev1.Node) (out []Misfit) {
	for _, key := range slices.Sorted(maps.Keys(pod.Spec.NodeSelector)) {
		if got, ok := node.Labels[key]; !ok || got != pod.Spec.NodeSelector[key] {
			out = append(out, Misfit{"spec.nodeSelector",
				fmt.Sprintf("the pod requires %s=%s, %s", key, pod.Spec.NodeSelector[key], has(node, key))})
		}
	}
	only := &corev1.Pod{Spec: corev1.PodSpec{Affinity: pod.Spec.Affinity}}
	match, err := nodeaffinity.GetRequiredNodeAffinity(only).Match(node)
	switch {
	case err != nil:
		out = append(out, Misfit{affinityField, err.Error()})
	case !match:
		out = append(out, Misfit{affinityField, whichTerms(required(pod), node)})
	}
	return out
}

// required returns the terms of the pod's required node affinity. A node matches the affinity if it matches one of
// the terms.
func required(pod *corev1.Pod) []corev1.NodeSelectorTerm {
	a := pod.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	return a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
}

const affinityField = "spec.affinity.nodeAffinity"

// whichTerms returns a text that lists, for each term, the first expression that the node does not match.
func whichTerms(terms []corev1.NodeSelectorTerm, node *corev1.Node) string {
	var why []string
	for _, term := range terms {
		for _, e := range term.MatchExpressions {
			alone := &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchExpressions: []corev1.NodeSelectorRequirement{e}}}}
			if ok, err := nodeaffinity.NewLazyErrorNodeSelector(alone).Match(node); err != nil || !ok {
				why = append(why, strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Key, e.Operator, strings.Join(e.Values, ","))))
				break
			}
		}
	}
	if len(why) == 0 {
		return "its required terms do not match"
	}
	return "the pod requires " + strings.Join(why, ", or ")
}

func has(node *corev1.Node, key string) string {
	if got, ok := node.Labels[key]; ok {
		return "a node has " + key + "=" + got
	}
	return "a node does not have " + key
}
