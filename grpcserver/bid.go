package grpcserver

import (
	"cmp"
	"fmt"
	"math"
)

// minWeight is the smallest weight that the function price uses for an option's requests, because pods without
// requests occupy capacity too. The function waste uses it as the smallest weight of the nodes' capacity.
const minWeight = weightCPU / 100

// tolerance is the largest relative difference at which two numbers count as equal.
const tolerance = 1e-6

// score holds the cost and the benefits of one option of CA's expander: a node group and the number of nodes to add.
type score struct {
	option    option
	cost      float64 // hourly cost of all nodes that the option adds
	warm      float64 // share of the nodes that use an existing peering
	requested float64 // Weight of the pods' requests
	room      float64 // Weight of the nodes' capacity
}

// price returns the hourly cost per unit of requested weight. The total costs of the options cannot be compared,
// because each option serves different pods.
func (b score) price() float64 { return b.cost / max(b.requested, minWeight) }

// waste returns the share of the nodes' capacity that no pod requests.
func (b score) waste() float64 { return 1 - min(1, b.requested/max(b.room, minWeight)) }

func (b score) String() string {
	return fmt.Sprintf("costs %.4g an hour, %.0f %% of its capacity used, %.0f %% over existing peerings", b.cost,
		100*(1-b.waste()), 100*b.warm)
}

// compare orders scores by price, then by the share of nodes that use an existing peering, then by waste.
func (b score) compare(other score) int {
	return cmp.Or(order(b.price(), other.price()), order(other.warm, b.warm), order(b.waste(), other.waste()))
}

// best returns the best score according to compare, and all scores that are equal to the best one.
func best(bids []score) (equal []score) {
	for _, b := range bids {
		switch {
		case len(equal) == 0 || b.compare(equal[0]) < 0:
			equal = []score{b}
		case b.compare(equal[0]) == 0:
			equal = append(equal, b)
		}
	}
	return equal
}

func order(a, b float64) int {
	if math.Abs(a-b) <= tolerance*max(math.Abs(a), math.Abs(b)) {
		return 0
	}
	return cmp.Compare(a, b)
}
