package fleet

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Bounds of prices, so that sums of them stay finite.
const (
	// MaxUnitPrice bounds each price by resource.
	MaxUnitPrice = 1e6
	// MaxPrice bounds what a node costs.
	MaxPrice = 1e12
)

// DefaultCurrency is that of node groups that name none, an ISO 4217 code.
const DefaultCurrency = "USD"

// CurrencyOrDefault is the currency of the group's prices.
func (s GroupSpec) CurrencyOrDefault() string { return cmp.Or(s.Currency, DefaultCurrency) }

// Incomparable is why the offer's price compares with no other: it is in another currency; empty when it does compare.
func (s GroupSpec) Incomparable(o Offer) string {
	if s.comparable(&o) {
		return ""
	}
	return fmt.Sprintf("its price is in %s, and the node groups' currency is %s", o.Currency, s.CurrencyOrDefault())
}

func (s *GroupSpec) comparable(o *Offer) bool {
	return o.Currency == "" || o.Currency == s.CurrencyOrDefault() || o.Price == 0 && len(o.Prices) == 0
}

// Price is what a node of the group costs on an offer in an hour: the offer's price per node times the group's factor,
// or, where it has none, what the shape costs by the offer's prices by resource. What these do not name costs nothing.
// It is between 0 and MaxPrice, and 0 where nobody says what it costs in the group's currency.
func (s GroupSpec) Price(o Offer) float64 { return s.price(&o, nil) }

// price takes the amounts of the shape; nil when they are not known yet.
func (s *GroupSpec) price(o *Offer, shape []amount) float64 {
	if !s.comparable(o) {
		return 0
	}
	if o.Price > 0 || len(o.Prices) == 0 {
		return bounded(o.Price * cmp.Or(s.PriceFactor, 1))
	}
	if shape == nil {
		shape = amountsOf(s.Shape)
	}
	sum := 0.0
	for _, a := range shape { // in order: a sum of floats depends on it
		if each := o.Prices[a.name]; each != 0 && a.units > 0 {
			sum += float64(each * a.units) // rounded, so that it is the same on all processors
		}
	}
	return bounded(sum)
}

// amount is a resource of a shape.
type amount struct {
	name  corev1.ResourceName
	want  resource.Quantity
	units float64
}

// amountsOf are the amounts of a shape, by name.
func amountsOf(shape corev1.ResourceList) (amounts []amount) {
	for _, name := range sortedNames(shape) {
		amounts = append(amounts, amount{name, shape[name], units(name, shape)})
	}
	return amounts
}

// fits reports whether it is offered, and as much of it free; free is all that is offered when it is nil.
func (a *amount) fits(offered, free corev1.ResourceList) bool {
	if a.want.Sign() <= 0 {
		return true
	}
	have, limited := offered[a.name]
	if !limited {
		return a.name == corev1.ResourceEphemeralStorage
	}
	if free != nil {
		have = free[a.name]
	}
	return a.want.Cmp(have) <= 0
}

// units is how much of a resource there is, in what it is priced by: GiB of what is measured in bytes.
func units(name corev1.ResourceName, of corev1.ResourceList) float64 {
	quantity := of[name]
	amount := quantity.AsApproximateFloat64()
	if name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage ||
		strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
		return amount / (1 << 30)
	}
	return amount
}

func bounded(price float64) float64 {
	if math.IsNaN(price) {
		return MaxPrice
	}
	return min(max(price, 0), MaxPrice)
}
