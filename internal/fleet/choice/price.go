package choice

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
)

// Bounds of prices, so that sums of them stay finite.
const (
	// MaxUnitPrice bounds each price by resource.
	MaxUnitPrice = 1e6
	// MaxPrice bounds what a node costs.
	MaxPrice = 1e12
)

// Incomparable is why the offer's price compares with no other: it is in another currency; empty when it does compare.
func Incomparable(s fleet.InstanceSpec, o fleet.Offer) string {
	if compares(&s, &o) {
		return ""
	}
	return fmt.Sprintf("its price is in %s, and the node groups' currency is %s", o.Currency, s.CurrencyOrDefault())
}

func compares(s *fleet.InstanceSpec, o *fleet.Offer) bool {
	return o.Currency == "" || o.Currency == s.CurrencyOrDefault() || o.Price == 0 && len(o.Prices) == 0
}

// Price is what a node of the group costs on an offer in an hour: the offer's price per node times the group's factor,
// or, where it has none, what the shape costs by the offer's prices by resource. What these do not name costs nothing.
// It is between 0 and MaxPrice, and 0 where nobody says what it costs in the group's currency.
func Price(s fleet.InstanceSpec, o fleet.Offer) float64 { return price(&s, &o, nil) }

// price takes the amounts of the shape; nil when they are not known yet.
func price(s *fleet.InstanceSpec, o *fleet.Offer, shape []amount) float64 {
	if !compares(s, o) {
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
		if each := o.Prices[a.Name]; each != 0 && a.units > 0 {
			sum += float64(each * a.units) // rounded, so that it is the same on all processors
		}
	}
	return bounded(sum)
}

// amount is a resource of a shape, and how much that is in what it is priced by.
type amount struct {
	fleet.Amount
	units float64
}

func amountsOf(shape corev1.ResourceList) (amounts []amount) {
	for _, a := range fleet.AmountsOf(shape) {
		amounts = append(amounts, amount{a, units(a.Name, a.Want)})
	}
	return amounts
}

// units is how much of a resource there is, in what it is priced by: GiB of what is measured in bytes.
func units(name corev1.ResourceName, quantity resource.Quantity) float64 {
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

// Cheapest is what a node costs in an hour on the cheapest offer that it fits on; 0 when none has a price.
func Cheapest(verdicts []Assessment) (least money.Money) {
	for _, v := range verdicts {
		if price := money.Of(v.Price); v.Fits && price > 0 && (least == 0 || price < least) {
			least = price
		}
	}
	return least
}
