package agent

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// waiting returns a slice of the agent's class. Liqo has admitted it, and it waits for a grant.
func waiting(consumer string, asks corev1.ResourceList) Slice {
	return slice(consumer, "default", asks, func(s *Slice) {
		s.Spec.Class = Class
		s.Status.Conditions, s.Status.Resources = s.Status.Conditions[:1], nil
	})
}

func TestSliceWaitsUntilItIsAnswered(t *testing.T) {
	require.True(t, waiting("munich", nil).Waits())
	answer := func(is string) func(*Slice) {
		return func(s *Slice) { s.Status.Conditions = append(s.Status.Conditions, sliceCondition{"Resources", is}) }
	}
	for why, change := range map[string]func(*Slice){
		"Liqo's own class":    func(s *Slice) { s.Spec.Class = "default" },
		"not sent by anybody": func(s *Slice) { s.Owner = "" },
		"not admitted":        func(s *Slice) { s.Status.Conditions[0].Status = denied },
		"not judged yet":      func(s *Slice) { s.Status.Conditions = nil },
		"denied":              answer(denied),
		"granted":             answer(accepted),
	} {
		s := waiting("munich", nil)
		change(&s)
		require.False(t, s.Waits(), why)
	}
}

// The cluster has 8 CPUs. The consumer munich may have 6 CPUs, and turin has no limit. Each case states the slice
// that a consumer requests, the existing slices, and the reason in the agent's answer.
func TestSlicesAreGrantedWithinCapAndRoom(t *testing.T) {
	config := Config{Offers: []OfferConfig{{Consumer: "munich", Cap: corev1.ResourceList{"cpu": amounts("6", "0")["cpu"]}},
		{Consumer: "turin"}}}
	granted := func(to, cpu string) Slice { return slice(to, "default", amounts(cpu, "1Gi")) }
	for name, test := range map[string]struct {
		consumer        string
		asks            corev1.ResourceList
		holds           []Slice
		tenant          string
		reason, message string
	}{
		"all is free": {"munich", amounts("6", "4Gi"), nil,
			"Active", reasonGranted, "granted"},
		"more than there is": {"turin", amounts("9", "99Gi"), nil,
			"Active", reasonFull, "not free on this provider: cpu 8 of 9, memory 32Gi of 99Gi"},
		"something that is not there": {"turin", amounts("1", "1Gi", gpu, "1"), nil,
			"Active", reasonFull, "not free on this provider: nvidia.com/gpu 0 of 1"},
		"granted to others": {"turin", amounts("4", "4Gi"), []Slice{granted("munich", "5")},
			"Active", reasonFull, "cpu 3 of 4"},
		"granted to itself": {"turin", amounts("4", "4Gi"), []Slice{granted("turin", "5")},
			"Active", reasonFull, "cpu 3 of 4"},
		"beyond its cap": {"munich", amounts("2", "4Gi"), []Slice{granted("munich", "5")},
			"Active", reasonFull, "more than the offer to munich: cpu 1 of 2"},
		"its cap counts itself": {"munich", amounts("2", "4Gi"), []Slice{granted("turin", "5")},
			"Active", reasonGranted, "granted"},
		"less than nothing": {"turin", amounts("-1", "4Gi"), nil,
			"Active", reasonInvalid, "cpu must not be negative"},
		"nothing is offered": {"rome", amounts("1", "4Gi"), nil,
			"Active", reasonUnknown, "there is no offer to rome"},
		"cordoned": {"turin", amounts("1", "4Gi"), nil,
			"Cordoned", reasonRefusing, "the Tenant of turin is Cordoned"},
		"drained": {"turin", amounts("1", "4Gi"), nil,
			"Drained", reasonRefusing, "is Drained"},
	} {
		t.Run(name, func(t *testing.T) {
			w := World{Nodes: []*corev1.Node{node("a", amounts("8", "32Gi"))}, Slices: test.holds}
			v := config.Judge(w, waiting(test.consumer, test.asks), Tenant{test.consumer, test.tenant})
			require.Equal(t, test.reason, v.Reason, v.Message)
			require.Contains(t, v.Message, test.message)
			require.Equal(t, test.reason == reasonGranted, v.Granted)
		})
	}
}

// A provider has sixteen nodes of 4 CPUs. A slice of 64 CPUs, which is their sum, is denied, because a pod of this
// size would start on no node. For the same reason, a slice of 16 CPUs is denied when each node has 1 free CPU.
func TestSliceLargerThanAnyNodeIsDenied(t *testing.T) {
	var w World
	for n := range 16 {
		w.Nodes = append(w.Nodes, node(fmt.Sprint("n", n), amounts("4", "16Gi", "pods", "110")))
	}
	one, sum := Config{Offers: []OfferConfig{{Consumer: "munich"}}},
		Config{Offers: []OfferConfig{{Consumer: "munich", AllowAggregate: true}}}
	active := Tenant{"munich", "Active"}
	whole := waiting("munich", amounts("64", "256Gi", "pods", "110"))
	v := one.Judge(w, whole, active)
	require.Equal(t, reasonLarger, v.Reason)
	require.Equal(t, "no single node of this provider has cpu 64, memory 256Gi, pods 110: request a smaller node, or "+
		"ask the provider to set allowAggregate", v.Message)
	require.True(t, sum.Judge(w, whole, active).Granted)
	require.True(t, one.Judge(w, waiting("munich", amounts("4", "16Gi", "pods", "110")), active).Granted)
	require.False(t, one.Judge(w, waiting("munich", amounts("4", "17Gi", "pods", "110")), active).Granted)
	for n := range 16 {
		w.Pods = append(w.Pods, pod(fmt.Sprint("p", n), fmt.Sprint("n", n), amounts("3", "4Gi")))
	}
	require.Equal(t, reasonLarger, one.Judge(w, waiting("munich", amounts("16", "64Gi", "pods", "110")), active).Reason)
}

// A provider has no node yet. It grants a slice that fits on a node which its autoscaler adds, and denies a larger
// slice.
func TestSliceThatFitsOnAnAddedNodeIsGranted(t *testing.T) {
	w := World{GrowsTo: amounts("16", "64Gi", "pods", "440"), GrowsNode: amounts("4", "16Gi", "pods", "110")}
	one, active := Config{Offers: []OfferConfig{{Consumer: "munich"}}}, Tenant{"munich", "Active"}
	v := one.Judge(w, waiting("munich", amounts("4", "16Gi", "pods", "110")), active)
	require.True(t, v.Granted, v)
	v = one.Judge(w, waiting("munich", amounts("5", "16Gi", "pods", "110")), active)
	require.Equal(t, reasonLarger, v.Reason)
}
