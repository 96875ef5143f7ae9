package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
	scheduling "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// Misfit is a field of the pod that keeps it away from a node group's nodes.
type Misfit struct {
	Field  string `json:"field"`
	Reason string `json:"reason"`
}

func (m Misfit) String() string { return m.Field + ": " + m.Reason }

// misfits are what CA's simulation, and later the scheduler, would say of the pod on an empty node of the group. What
// depends on other pods, as anti-affinity and topology spread, is not judged.
func misfits(pod *corev1.Pod, node *corev1.Node) (out []Misfit) {
	out = append(out, selectors(pod, node)...)
	hard := func(t *corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
	}
	for _, taint := range node.Spec.Taints {
		if hard(&taint) && !scheduling.TolerationsTolerateTaint(pod.Spec.Tolerations, &taint) {
			out = append(out, Misfit{"spec.tolerations", "none tolerates the taint " + taint.ToString()})
		}
	}
	requests := resource.PodRequests(pod, resource.PodResourcesOptions{})
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		want, have := requests[name], node.Status.Allocatable[name]
		if want.Sign() > 0 && want.Cmp(have) > 0 {
			out = append(out, Misfit{"resources.requests",
				fmt.Sprintf("%s %s is asked for, a node has %s", name, want.String(), have.String())})
		}
	}
	return out
}

func selectors(pod *corev1.Pod, node *corev1.Node) (out []Misfit) {
	for _, key := range slices.Sorted(maps.Keys(pod.Spec.NodeSelector)) {
		if got, ok := node.Labels[key]; !ok || got != pod.Spec.NodeSelector[key] {
			out = append(out, Misfit{"spec.nodeSelector",
				fmt.Sprintf("%s=%s is asked for, %s", key, pod.Spec.NodeSelector[key], has(node, key))})
		}
	}
	only := pod.DeepCopy()
	only.Spec.NodeSelector = nil
	match, err := nodeaffinity.GetRequiredNodeAffinity(only).Match(node)
	switch {
	case err != nil:
		out = append(out, Misfit{affinityField, err.Error()})
	case !match:
		out = append(out, Misfit{affinityField, whichTerms(pod.Spec.Affinity.NodeAffinity, node)})
	}
	return out
}

const affinityField = "spec.affinity.nodeAffinity"

// whichTerms names, of each term, the first expression that the node does not meet. One term would do.
func whichTerms(a *corev1.NodeAffinity, node *corev1.Node) string {
	var why []string
	for _, term := range a.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
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
	return strings.Join(why, ", or ") + " is asked for"
}

func has(node *corev1.Node, key string) string {
	if got, ok := node.Labels[key]; ok {
		return "a node has " + key + "=" + got
	}
	return "a node does not have " + key
}
