package grpcserver

import (
	"cmp"
	"fmt"
	"math"
)

// leastWeight is the minimum weight of a pod, because a pod without requests occupies a place too.
const leastWeight = weightCPU / 100

// nearly is the relative difference up to which two figures count as equal.
const nearly = 1e-6

// bid describes an option of CA's expander: its cost and its benefits.
type bid struct {
	option option
	cost   float64 // of all its nodes, an hour
	warm   float64 // share of its nodes that use an existing peering
	asked  float64 // the requests of its pods, see Weight
	room   float64 // the capacity of its nodes, see Weight
}

// price returns the hourly cost per unit of requested weight. Options help different pods, so their costs alone cannot
// be compared.
func (b bid) price() float64 { return b.cost / max(b.asked, leastWeight) }

// waste returns the share of the nodes that no pod requests.
func (b bid) waste() float64 { return 1 - min(1, b.asked/max(b.room, leastWeight)) }

func (b bid) String() string {
	return fmt.Sprintf("costs %.4g an hour, %.0f %% of it is used, %.0f %% over peerings that are there", b.cost,
		100*(1-b.waste()), 100*b.warm)
}

// compare orders bids by price, then by the share of existing peerings, then by waste.
func (b bid) compare(other bid) int {
	return cmp.Or(order(b.price(), other.price()), order(other.warm, b.warm), order(b.waste(), other.waste()))
}

// best returns the bids that no other bid is better than.
func best(bids []bid) (equal []bid) {
	for _, b := range bids {
		switch {
		case len(equal) == 0 || b.compare(equal[0]) < 0:
			equal = []bid{b}
		case b.compare(equal[0]) == 0:
			equal = append(equal, b)
		}
	}
	return equal
}

func order(a, b float64) int {
	if math.Abs(a-b) <= nearly*max(math.Abs(a), math.Abs(b)) {
		return 0
	}
	return cmp.Compare(a, b)
}
