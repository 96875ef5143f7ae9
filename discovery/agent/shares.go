package agent

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Shares selects how the part of the whole capacity that each consumer may hold is computed. The part bounds a
// consumer even while other consumers use less than their part.
type Shares string

// These constants are the kinds of shares.
const (
	SharesNone    Shares = ""        // no bound: first come, first served
	SharesEqual   Shares = "equal"   // the same part for each consumer
	SharesWeights Shares = "weights" // in proportion to the weight of the consumer's offer
)

// bound returns the maximum that the offer's consumer may hold in total. For each resource this is the lower of the
// offer's cap and the consumer's share. A share is a part of the capacity without any grants. A resource that is
// absent from the result is not bounded.
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
	for name, whole := range nonNegative(w.capacity(c.Reserve)) {
		if share := part(name, whole, own, all); !has(most, name) || share.Cmp(most[name]) < 0 {
			most[name] = share
		}
	}
	return most
}

// first returns the index of the consumer's first offer, or -1. The weight of this offer is the consumer's weight,
// and the cap of this offer bounds the consumer's slices.
func (c Config) first(consumer string) int {
	return slices.IndexFunc(c.Offers, func(o OfferConfig) bool { return o.Consumer == consumer })
}

// firsts returns the first offer of each consumer.
func (c Config) firsts() (firsts []OfferConfig) {
	for i, o := range c.Offers {
		if c.first(o.Consumer) == i {
			firsts = append(firsts, o)
		}
	}
	return firsts
}

func (o OfferConfig) weight() int64 { return int64(max(o.Weight, 1)) }

// part returns whole*weight/all. It rounds CPU down to thousandths, and any other resource down to whole units.
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
