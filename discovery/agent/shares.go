package agent

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Shares says how much of what there is each consumer may have, whatever the others leave.
type Shares string

// The shares.
const (
	SharesNone    Shares = ""        // whoever asks first
	SharesEqual   Shares = "equal"   // each the same
	SharesWeights Shares = "weights" // each in proportion to the weight of its offer
)

// bound is the most that the offer's consumer may have in all: the offer's cap, and the consumer's share of what there
// is with no slice granted. What it does not name is not bounded.
func (c Config) bound(w World, o OfferConfig) corev1.ResourceList {
	most := o.Cap.DeepCopy()
	if c.Shares == SharesNone {
		return most
	}
	if most == nil {
		most = corev1.ResourceList{}
	}
	all := int64(0)
	for _, first := range c.firsts() {
		all += first.weight()
	}
	own := c.Offers[c.first(o.Consumer)].weight()
	for name, whole := range nonNegative(w.whole(c.Reserve)) {
		if share := part(name, whole, own, all); !has(most, name) || share.Cmp(most[name]) < 0 {
			most[name] = share
		}
	}
	return most
}

// first is the index of the consumer's first offer, which has its weight and the cap that slices are held to; -1
// without one.
func (c Config) first(consumer string) int {
	return slices.IndexFunc(c.Offers, func(o OfferConfig) bool { return o.Consumer == consumer })
}

// firsts are the first offers of all consumers.
func (c Config) firsts() (firsts []OfferConfig) {
	for i, o := range c.Offers {
		if c.first(o.Consumer) == i {
			firsts = append(firsts, o)
		}
	}
	return firsts
}

func (o OfferConfig) weight() int64 { return int64(max(o.Weight, 1)) }

// part is weight of all parts of the whole: thousandths of CPUs, and units of anything else, rounded down.
func part(name corev1.ResourceName, whole resource.Quantity, weight, all int64) resource.Quantity {
	of := func(amount int64) int64 { return amount/all*weight + amount%all*weight/all }
	if name == corev1.ResourceCPU {
		return *resource.NewMilliQuantity(of(whole.MilliValue()), whole.Format)
	}
	return *resource.NewQuantity(of(whole.Value()), whole.Format)
}

func has(amounts corev1.ResourceList, name corev1.ResourceName) bool {
	_, ok := amounts[name]
	return ok
}
