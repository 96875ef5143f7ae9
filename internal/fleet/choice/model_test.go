package choice_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/choice"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// randomCandidates returns candidates with different prices, sizes, taken capacities, labels and cordons.
func randomCandidates(r *rand.Rand, most int) (all []choice.Candidate) {
	for n := range 1 + r.IntN(most) {
		all = append(all, candidate(fmt.Sprintf("p%02d", n), float64(r.IntN(4)), func(c *choice.Candidate) {
			c.Offer.Lendable = corev1.ResourceList{
				"cpu":    *resource.NewMilliQuantity(r.Int64N(20000), resource.DecimalSI),
				"memory": *resource.NewQuantity(r.Int64N(64<<30), resource.BinarySI),
				"pods":   *resource.NewQuantity(r.Int64N(500), resource.DecimalSI)}
			if r.IntN(3) == 0 {
				c.Offer.Lendable["nvidia.com/gpu"] = *resource.NewQuantity(r.Int64N(5), resource.DecimalSI)
			}
			if r.IntN(3) == 0 {
				c.Offer.MaxNodes, c.Nodes = r.IntN(4), r.IntN(4)
			}
			if r.IntN(2) == 0 {
				c.Free = takenFrom(r, c.Offer.Lendable)
			}
			if r.IntN(6) == 0 {
				c.Offer.Labels = nil
			}
			c.Cordoned = r.IntN(8) == 0
		}))
	}
	return all
}

// takenFrom returns the resources that are left after random holds. Some holds leave nothing of a resource.
func takenFrom(r *rand.Rand, lendable corev1.ResourceList) corev1.ResourceList {
	free := lendable.DeepCopy()
	for _, name := range []corev1.ResourceName{"cpu", "memory", "pods", "nvidia.com/gpu"} {
		if q, ok := free[name]; ok {
			q.Sub(*resource.NewMilliQuantity(r.Int64N(2*q.MilliValue()/3+1), q.Format))
			free[name] = q
		}
	}
	if r.IntN(5) == 0 {
		delete(free, "pods")
	}
	return free
}

func randomShape(r *rand.Rand) fleet.InstanceSpec {
	s := chooseSpec
	s.Shape = corev1.ResourceList{
		"cpu":    *resource.NewMilliQuantity(1+r.Int64N(4000), resource.DecimalSI),
		"memory": *resource.NewQuantity(1+r.Int64N(8<<30), resource.BinarySI),
		"pods":   *resource.NewQuantity(1+r.Int64N(60), resource.DecimalSI)}
	if r.IntN(4) == 0 {
		s.Shape["nvidia.com/gpu"] = *resource.NewQuantity(1+r.Int64N(2), resource.DecimalSI)
	}
	return s
}

// exact returns the number of nodes that fit, with exact arithmetic. It adds one node after another.
func exact(spec fleet.InstanceSpec, c choice.Candidate) (n int) {
	if c.Cordoned || c.Offer.Labels == nil {
		return 0
	}
	free := c.Free
	if free == nil {
		free = c.Offer.Lendable
	}
	free = free.DeepCopy()
	for ; n < 1000 && (c.Offer.MaxNodes == 0 || c.Nodes+n < c.Offer.MaxNodes); n++ {
		for name, want := range spec.Shape {
			_, offered := c.Offer.Lendable[name]
			have := free[name]
			if !offered || have.Cmp(want) < 0 {
				return n
			}
			have.Sub(want)
			free[name] = have
		}
	}
	return n
}

func TestRoomEqualsExactArithmetic(t *testing.T) {
	for r := range testkit.Cases(t) {
		spec, all := randomShape(r), randomCandidates(r, 6)
		room := choice.Room(spec, all, chooseAt)
		for _, c := range all {
			require.Equal(t, exact(spec, c), room[c.Offer.Provider], "shape %v of %v", spec.Shape, c)
		}
	}
}

// When a resource is one byte short of two nodes, only one node fits.
func TestOneMissingByteLeavesNoRoomForANode(t *testing.T) {
	spec := chooseSpec
	spec.Shape = amounts("cpu", "1", "memory", "4Gi", "pods", "10")
	for free, want := range map[int64]int{8 << 30: 2, 8<<30 - 1: 1, 4 << 30: 1} {
		c := candidate("p", 1, func(c *choice.Candidate) {
			c.Free = amounts("cpu", "8", "pods", "110")
			c.Free["memory"] = *resource.NewQuantity(free, resource.BinarySI)
		})
		require.Equal(t, want, choice.Room(spec, []choice.Candidate{c}, chooseAt)["p"], "%d bytes", free)
	}
}

// market is the model's knowledge about candidates: the number of nodes that fit on each candidate, its price, and
// the prices of all places in ascending order. A place is capacity for one node.
type market struct {
	places map[string]int
	price  map[string]float64
	prices []float64
}

func marketOf(spec fleet.InstanceSpec, all []choice.Candidate) market {
	m := market{places: map[string]int{}, price: map[string]float64{}}
	for _, c := range all {
		n := exact(spec, c)
		m.places[c.Offer.Provider], m.price[c.Offer.Provider] = n, c.Offer.Price
		m.prices = append(m.prices, slices.Repeat([]float64{c.Offer.Price}, n)...)
	}
	slices.Sort(m.prices)
	return m
}

// A choice is one of the cheapest candidates that fit. In a burst, the rank of each instance counts the earlier
// instances. Together the instances take the cheapest places, and none twice. The order of the candidates has no
// influence.
func TestBurstTakesEachOfTheCheapestPlacesOnce(t *testing.T) {
	for r := range testkit.Cases(t) {
		spec, all := randomShape(r), randomCandidates(r, 18)
		m := marketOf(spec, all)
		if len(m.prices) == 0 {
			require.Empty(t, choice.Choose(spec, all, nil, choice.Rank{Name: "edge"}, chooseAt).Chosen)
			continue
		}
		taken, paid, least := map[string]int{}, 0.0, 0.0
		for ahead := range min(len(m.prices), 15) {
			rank := choice.Rank{Ahead: ahead, Name: "edge"}
			chosen := choice.Choose(spec, all, nil, rank, chooseAt).Chosen
			r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			require.Equal(t, chosen, choice.Choose(spec, all, nil, rank, chooseAt).Chosen)
			taken[chosen]++
			require.LessOrEqual(t, taken[chosen], m.places[chosen], "%s is oversold", chosen)
			paid, least = paid+m.price[chosen], least+m.prices[ahead]
			require.InDelta(t, least, paid, 1e-9, "choice %d is not the cheapest place that is left", ahead)
		}
	}
}
