package agent

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// atMost returns a random amount of each resource.
func atMost(r *rand.Rand, cpu, gib int64) corev1.ResourceList {
	return corev1.ResourceList{"cpu": *resource.NewMilliQuantity(r.Int64N(cpu*1000+1), resource.DecimalSI),
		"memory": *resource.NewQuantity(r.Int64N(gib<<30+1), resource.BinarySI),
		"pods":   *resource.NewQuantity(r.Int64N(120), resource.DecimalSI),
		gpu:      *resource.NewQuantity(r.Int64N(4), resource.DecimalSI)}
}

// randomCluster returns a few nodes, the cluster's own pods with and without a node, and offloaded pods of consumers.
func randomCluster(r *rand.Rand, consumers []string) (w World) {
	for n := range 1 + r.IntN(5) {
		w.Nodes = append(w.Nodes, node(fmt.Sprint("n", n), atMost(r, 16, 64)))
	}
	for n := range r.IntN(8) {
		p := pod(fmt.Sprint("p", n), fmt.Sprint("n", r.IntN(len(w.Nodes))), atMost(r, 3, 6))
		switch r.IntN(5) {
		case 0:
			p.Spec.NodeName, p.Status.Phase = "", corev1.PodPending
		case 1:
			broughtBy(consumers[r.IntN(len(consumers))])(p)
		}
		w.Pods = append(w.Pods, p)
	}
	return w
}

func randomConfig(r *rand.Rand, consumers []string) Config {
	c := Config{Provider: "milan", Shares: []Shares{SharesNone, SharesEqual, SharesWeights}[r.IntN(3)]}
	if r.IntN(2) == 0 {
		c.Reserve = atMost(r, 2, 4)
	}
	for _, id := range consumers {
		o := OfferConfig{Consumer: id, Hub: "default", Weight: r.IntN(4), AllowAggregate: r.IntN(2) == 0}
		if r.IntN(3) == 0 {
			o.Cap = atMost(r, 10, 30)
		}
		c.Offers = append(c.Offers, o)
	}
	return c
}

// fitsIn reports whether the requested amount of each resource is available.
func fitsIn(has, asks corev1.ResourceList) bool {
	for name, amount := range asks {
		if have := has[name]; have.Cmp(amount) < 0 {
			return false
		}
	}
	return true
}

// fitsANode reports whether a single node is as large as the request. All nodes of the test are usable.
func fitsANode(w World, asks corev1.ResourceList) bool {
	return slices.ContainsFunc(w.Nodes, func(n *corev1.Node) bool { return fitsIn(n.Status.Allocatable, asks) })
}

// unspent returns the capacity that the model has left. From the nodes' capacity it subtracts the reserve, and the
// requests of the cluster's own pods that run or could run. For each consumer it also subtracts the larger of two
// amounts: the consumer's grants, and the requests of its pods. It may be negative.
func unspent(w World, reserve corev1.ResourceList) corev1.ResourceList {
	left, used := corev1.ResourceList{}, map[string]corev1.ResourceList{}
	for _, n := range w.Nodes {
		add(left, n.Status.Allocatable)
	}
	for _, p := range w.Pods {
		starts := p.Spec.NodeName != ""
		for _, n := range w.Nodes {
			starts = starts || fitsIn(n.Status.Allocatable, requests(p))
		}
		consumer := p.Labels[labelPodOrigin]
		switch {
		case !starts:
		case consumer == "":
			subtract(left, requests(p))
		default:
			if used[consumer] == nil {
				used[consumer] = corev1.ResourceList{}
			}
			add(used[consumer], requests(p))
		}
	}
	subtract(left, reserve)
	granted := w.Granted()
	for id, list := range granted {
		subtract(left, list)
		for name, amount := range used[id] {
			amount.Sub(list[name])
			subtract(left, corev1.ResourceList{name: amount})
		}
		delete(used, id)
	}
	for _, list := range used {
		subtract(left, list)
	}
	return left
}

// Whatever the order of the requests, the grants never exceed the free capacity. A consumer is granted the amount of
// its offer, and no more.
func TestOfferedCapacityIsGrantedAndNeverExceeded(t *testing.T) {
	for r := range testkit.Cases(t) {
		consumers := []string{"munich", "turin", "rome"}[:1+r.IntN(3)]
		w, c := randomCluster(r, consumers), randomConfig(r, consumers)
		for range 10 {
			at := r.IntN(len(consumers))
			if len(w.Slices) > 0 && r.IntN(4) == 0 { // a consumer returns one slice
				w.Slices = w.Slices[1:]
			}
			left := c.Measure(w, c.Offers[at]).Lendable
			for _, s := range w.Slices { // the consumer's own slices are not part of its offer
				if s.Owner == consumers[at] {
					for name, amount := range s.Granted() {
						has := left[name].DeepCopy()
						has.Sub(amount)
						left[name] = has
					}
				}
			}
			asks := atMost(r, 4, 8)
			if r.IntN(3) == 0 { // requests all of the remaining capacity
				asks = left.DeepCopy()
			}
			maps.DeleteFunc(asks, func(_ corev1.ResourceName, amount resource.Quantity) bool { return amount.Sign() <= 0 })
			s := waiting(consumers[at], asks)
			v := c.Judge(w, s, Tenant{consumers[at], tenantActive})
			right := fitsIn(left, asks) && (c.Offers[at].AllowAggregate || fitsANode(w, asks))
			require.Equal(t, right, v.Granted, "offered %v, requested %v: %s", renderAmounts(left), renderAmounts(asks),
				v.Message)
			if !v.Granted {
				continue
			}
			s.Status.Resources = asks
			s.Status.Conditions = append(s.Status.Conditions, sliceCondition{Type: conditionResources, Status: accepted})
			w.Slices = append(w.Slices, s)
			remains := unspent(w, c.Reserve)
			for name := range asks {
				amount := remains[name]
				require.GreaterOrEqual(t, amount.Sign(), 0, "%s is oversold", name)
			}
		}
	}
}

// The shares of all consumers together never exceed the whole capacity.
func TestSharesNeverExceedTheWhole(t *testing.T) {
	for r := range testkit.Cases(t) {
		weights, all := make([]int64, 1+r.IntN(100)), int64(0)
		for i := range weights {
			weights[i] = 1 + r.Int64N(1000)
			all += weights[i]
		}
		for _, name := range []corev1.ResourceName{"cpu", "memory", gpu} {
			whole := *resource.NewMilliQuantity(r.Int64N(1<<uint(1+r.IntN(60))), resource.DecimalSI)
			if name != "cpu" {
				whole = *resource.NewQuantity(r.Int64N(1<<uint(1+r.IntN(50))), resource.DecimalSI)
			}
			sum := resource.Quantity{}
			for _, weight := range weights {
				sum.Add(part(name, whole, weight, all))
			}
			require.LessOrEqual(t, sum.Cmp(whole), 0, "%s: %s of %s", name, sum.String(), whole.String())
		}
	}
}
