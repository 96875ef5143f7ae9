package template

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Differs compares the Node with the group's template that CA received. It returns one sentence for each differing
// field, always in the same order, or nil. It ignores fields that change or do not affect CA's simulation: the
// hostname; the taints of conditions, of cordons and of CA itself; and labels that only the Node has.
func Differs(s fleet.InstanceSpec, node *corev1.Node) (how []string) {
	template := Of(s)
	for _, key := range slices.Sorted(maps.Keys(template.Labels)) {
		want := template.Labels[key]
		switch got, there := node.Labels[key]; {
		case key == corev1.LabelHostname || there && got == want:
		case !there && key == fleet.LabelType && want == fleet.TypeVirtualNode: // made before nodes had this label
		case !there:
			how = append(how, fmt.Sprintf("label %s=%s is missing", key, want))
		default:
			how = append(how, fmt.Sprintf("label %s is %s instead of %s", key, got, want))
		}
	}
	how = append(how, taintsDiffer(template.Spec.Taints, node.Spec.Taints)...)
	how = append(how, amountsDiffer("capacity", template.Status.Capacity, node.Status.Capacity)...)
	return append(how, amountsDiffer("allocatable", template.Status.Allocatable, node.Status.Allocatable)...)
}

func taintsDiffer(want, got []corev1.Taint) (how []string) {
	lacks := func(all []corev1.Taint, taint corev1.Taint) bool {
		return !slices.ContainsFunc(all, func(other corev1.Taint) bool {
			return other.Key == taint.Key && other.Value == taint.Value && other.Effect == taint.Effect
		})
	}
	for _, taint := range want {
		if lacks(got, taint) {
			how = append(how, "taint "+taint.ToString()+" is missing")
		}
	}
	for _, taint := range got {
		if !passing(taint) && lacks(want, taint) {
			how = append(how, "taint "+taint.ToString()+" is not in the template")
		}
	}
	slices.Sort(how)
	return how
}

// passing reports whether CA ignores the taint when it uses a Node as an example (CA utils/taints/taints.go).
func passing(taint corev1.Taint) bool {
	return strings.HasPrefix(taint.Key, "node.kubernetes.io/") || // conditions and cordons
		strings.HasPrefix(taint.Key, "node.cloudprovider.kubernetes.io/") ||
		strings.HasSuffix(taint.Key, "ClusterAutoscaler") || // to be deleted, or a candidate for deletion
		strings.Contains(taint.Key, "taint.cluster-autoscaler.kubernetes.io/") // ignore-, startup- and status-taint
}

func amountsDiffer(what string, want, got corev1.ResourceList) (how []string) {
	names := slices.Collect(maps.Keys(want))
	names = slices.AppendSeq(names, maps.Keys(got))
	slices.Sort(names)
	for _, name := range slices.Compact(names) { // an absent amount is 0
		wanted, has := want[name], got[name]
		if has.Cmp(wanted) != 0 {
			how = append(how, fmt.Sprintf("%s %s is %s instead of %s", what, name, has.String(), wanted.String()))
		}
	}
	return how
}

// Compare sets f.Differs. The caller must have set the other fields of f. It compares only a Node whose booking could
// be read, because the booking defines the template.
func Compare(f *fleet.Found, node *corev1.Node) {
	if f.Stamped && f.Ready && f.Booking != nil && f.Booking.Spec.ID != "" {
		f.Differs = Differs(f.Booking.Spec, node)
	}
}
