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

// These bounds keep sums of prices finite.
const (
	// MaxUnitPrice bounds each price per resource.
	MaxUnitPrice = 1e6
	// MaxPrice bounds the price of a node.
	MaxPrice = 1e12
)

// Incomparable returns the reason for which the offer's price cannot be compared: the price is in another currency. It
// returns "" when the price can be compared.
func Incomparable(s fleet.InstanceSpec, o fleet.Offer) string {
	if compares(&s, &o) {
		return ""
	}
	return fmt.Sprintf("its price is in %s, and the node groups' currency is %s", o.Currency, s.CurrencyOrDefault())
}

func compares(s *fleet.InstanceSpec, o *fleet.Offer) bool {
	return o.Currency == "" || o.Currency == s.CurrencyOrDefault() || o.Price == 0 && len(o.Prices) == 0
}

// Price returns the hourly price of one node of the group on an offer: the offer's price per node times the group's
// factor or, without a price per node, the sum of the shape's amounts at the offer's prices per resource. A resource
// without a price costs nothing. The result is between 0 and MaxPrice. It is 0 when the offer has no price in the
// group's currency.
func Price(s fleet.InstanceSpec, o fleet.Offer) float64 { return price(&s, &o, nil) }

// price returns the same result as Price. shape contains the amounts of the group's shape, or is nil when they are not
// computed yet.
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
	for _, a := range shape { // sorted, because a sum of floats depends on the order
		if each := o.Prices[a.Name]; each != 0 && a.units > 0 {
			sum += float64(each * a.units) // rounded, so that all processors get the same result
		}
	}
	return bounded(sum)
}

// amount is a resource of a shape with its quantity and its number of priced units.
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

// units returns the quantity in the units of the resource's price: GiB for resources measured in bytes, else as it is.
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

// Cheapest returns the hourly price of a node on the cheapest fitting offer. It returns 0 when no such offer has a
// price.
func Cheapest(assessments []Assessment) (least money.Money) {
	for _, v := range assessments {
		if price := money.Of(v.Price); v.Fits && price > 0 && (least == 0 || price < least) {
			least = price
		}
	}
	return least
}
