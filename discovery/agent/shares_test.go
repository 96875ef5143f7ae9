package agent

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// The cluster has 10 CPUs and 3 GPUs for munich, turin and rome. A pod uses one of the CPUs. Each case sets how the
// capacity is divided, and states the share of each consumer.
func TestSharesOfConsumers(t *testing.T) {
	three := []OfferConfig{{Consumer: "munich", Weight: 2}, {Consumer: "turin"},
		{Consumer: "turin", Hub: "east", Weight: 9},
		{Consumer: "rome", Cap: corev1.ResourceList{"cpu": resource.MustParse("1")}}}
	for name, test := range map[string]struct {
		shares    Shares
		cpu, gpus [3]string // shares of munich, turin and rome; empty: the whole free amount
	}{
		"none":    {SharesNone, [3]string{"", "", "1"}, [3]string{}},
		"equal":   {SharesEqual, [3]string{"3", "3", "1"}, [3]string{"1", "1", "1"}},
		"weights": {SharesWeights, [3]string{"4500m", "2250m", "1"}, [3]string{"1", "0", "0"}},
	} {
		t.Run(name, func(t *testing.T) {
			offers := three
			if test.shares == SharesEqual {
				offers = []OfferConfig{{Consumer: "munich"}, {Consumer: "turin"}, {Consumer: "turin", Hub: "east"}, three[3]}
			}
			config := Config{Offers: offers, Shares: test.shares}
			w := World{
				Nodes: []*corev1.Node{node("a", amounts("10", "30Gi", gpu, "3"))},
				Pods:  []*corev1.Pod{pod("p", "a", amounts("1", "0"))},
				// a grant does not change the share of another consumer
				Slices: []Slice{slice("munich", "default", amounts("1", "1Gi"))},
			}
			for n, consumer := range []string{"munich", "turin", "rome"} {
				bound := config.bound(w, config.Offers[config.first(consumer)])
				for name, want := range map[corev1.ResourceName]string{"cpu": test.cpu[n], gpu: test.gpus[n]} {
					amount, bounded := bound[name]
					require.Equal(t, want != "", bounded, "%s %s", consumer, name)
					if bounded {
						require.Zero(t, amount.Cmp(resource.MustParse(want)), "%s %s: %s", consumer, name, amount.String())
					}
				}
			}
		})
	}
}

// A slice beyond its consumer's share is denied although capacity is free. A slice within the share is granted.
func TestSliceBeyondItsShareIsDenied(t *testing.T) {
	config := Config{Offers: []OfferConfig{{Consumer: "munich"}, {Consumer: "turin"}}, Shares: SharesEqual}
	held := slice("munich", "default", amounts("4", "1Gi"), func(s *Slice) { s.Namespace = "liqo-tenant-munich" })
	w := World{Nodes: []*corev1.Node{node("a", amounts("8", "32Gi"))}, Slices: []Slice{held}}
	denied := config.Judge(w, waiting("munich", amounts("1", "1Gi")), Tenant{"munich", tenantActive})
	require.Equal(t, Decision{Reason: reasonFull, Message: "more than the offer to munich: cpu 0 of 1"}, denied)
	require.True(t, config.Judge(w, waiting("turin", amounts("4", "16Gi")), Tenant{"turin", tenantActive}).Granted)
}

// An offer contains the total amount for its consumer. Grants that the consumer has through the same hub do not
// reduce this amount. Its grants through other hubs reduce it, and so do grants of other consumers. Without other
// grants, it is the free capacity, but at most the consumer's cap.
func TestOfferIsTheConsumersTotal(t *testing.T) {
	config := Config{Provider: "milan", Reserve: corev1.ResourceList{"cpu": resource.MustParse("1")},
		Offers: []OfferConfig{{Consumer: "munich", Hub: "default", Cap: amounts("6", "99Gi")}}}
	w := World{Nodes: []*corev1.Node{node("a", amounts("16", "32Gi"))}}
	offered := func() string { return renderAmounts(config.Measure(w, config.Offers[0]).Lendable) }
	require.Equal(t, "cpu=6, memory=32Gi, pods=0", offered())
	w.Slices = []Slice{slice("munich", "default", amounts("2", "2Gi"))}
	require.Equal(t, "cpu=6, memory=32Gi, pods=0", offered(), "its holds it subtracts itself")
	w.Slices = append(w.Slices, slice("munich", "", amounts("2", "2Gi")))
	require.Equal(t, "cpu=4, memory=30Gi, pods=0", offered())
	w.Slices = append(w.Slices, slice("turin", "", amounts("12", "2Gi")))
	require.Equal(t, "cpu=1, memory=28Gi, pods=0", offered())
	w.Slices = append(w.Slices, slice("munich", "east", amounts("5", "0")))
	require.Equal(t, "cpu=0, memory=28Gi, pods=0", offered())
}

// An offer names its largest nodes. It does not name a node if another node is at least as large in every offered
// resource. An offer that only states a sum names no nodes.
func TestMeasureNamesTheLargestNodes(t *testing.T) {
	w := World{}
	for name, list := range map[string]corev1.ResourceList{
		"a": amounts("4", "16Gi"), "b": amounts("4", "16Gi"), "c": amounts("2", "16Gi"), "d": amounts("2", "64Gi"),
		"e": amounts("1", "4Gi", gpu, "1"), "f": amounts("0", "4Gi", "example.com/fpga", "0"),
	} {
		w.Nodes = append(w.Nodes, node(name, list))
	}
	w.Nodes = append(w.Nodes, node("cordoned", amounts("64", "256Gi"), func(n *corev1.Node) {
		n.Spec.Unschedulable = true
	}))
	config := Config{Provider: "milan", Offers: []OfferConfig{{Consumer: "munich"},
		{Consumer: "turin", AllowAggregate: true}}}
	var largest []string
	for _, n := range config.Measure(w, config.Offers[0]).LargestNodes {
		largest = append(largest, renderAmounts(n))
	}
	require.Equal(t, []string{"cpu=4, memory=16Gi", "cpu=2, memory=64Gi", "cpu=1, memory=4Gi, nvidia.com/gpu=1"}, largest)
	require.Empty(t, config.Measure(w, config.Offers[1]).LargestNodes)
	for n := range 9 {
		w.Nodes = append(w.Nodes, node(fmt.Sprint("n", n), amounts(fmt.Sprint(10+n), fmt.Sprint(90-n, "Gi"))))
	}
	require.Len(t, config.Measure(w, config.Offers[0]).LargestNodes, 4)
}
