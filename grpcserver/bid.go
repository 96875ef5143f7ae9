package grpcserver

import (
	"cmp"
	"fmt"
	"math"
)

// leastWeight is what a pod weighs at least: one without requests takes a place, too.
const leastWeight = weightCPU / 100

// nearly is by how much two figures may differ and be the same.
const nearly = 1e-6

// bid is an option of CA's expander: what it costs and what it brings.
type bid struct {
	option option
	cost   float64 // of all its nodes, an hour
	warm   float64 // share of its nodes that come over a peering which is there
	asked  float64 // what its pods ask for, see Weight
	room   float64 // what its nodes have room for, see Weight
}

// price is what an hour of what the pods ask for costs. Options help different pods, so costs alone do not compare.
func (b bid) price() float64 { return b.cost / max(b.asked, leastWeight) }

// waste is the share of the nodes that nobody asks for.
func (b bid) waste() float64 { return 1 - min(1, b.asked/max(b.room, leastWeight)) }

func (b bid) String() string {
	return fmt.Sprintf("costs %.4g an hour, %.0f %% of it is used, %.0f %% over peerings that are there", b.cost,
		100*(1-b.waste()), 100*b.warm)
}

// compare orders by price, then by what comes sooner, then by what is wasted.
func (b bid) compare(other bid) int {
	return cmp.Or(order(b.price(), other.price()), order(other.warm, b.warm), order(b.waste(), other.waste()))
}

// best are the bids that none is better than.
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
