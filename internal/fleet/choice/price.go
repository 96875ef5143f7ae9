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
	// MaxUnitPrice bounds the price of one unit of a resource.
	MaxUnitPrice = 1e6
	// MaxPrice bounds the price of a node.
	MaxPrice = 1e12
)

// Incomparable returns a text if the offer's price is in another currency than the group's, and therefore cannot be
// compared. Otherwise it returns "".
func Incomparable(s fleet.InstanceSpec, o fleet.Offer) string {
	if compares(&s, &o) {
		return ""
	}
	return fmt.Sprintf("its price is in %s, and the node groups' currency is %s", o.Currency, s.CurrencyOrDefault())
}

func compares(s *fleet.InstanceSpec, o *fleet.Offer) bool {
	return o.Currency == "" || o.Currency == s.CurrencyOrDefault() || o.Price == 0 && len(o.Prices) == 0
}

// Price returns the hourly price of one node of the group on an offer. If the offer has a price per node, the result
// is this price times the group's factor. Otherwise the result is the sum of the shape's amounts, each multiplied by
// the offer's price of the resource. A resource without a price costs nothing. The result is between 0 and MaxPrice.
// It is 0 when the offer has no price in the group's currency.
func Price(s fleet.InstanceSpec, o fleet.Offer) float64 { return price(&s, &o, nil) }

// price returns the same result as Price. The parameter `shape` contains the amounts of the group's shape. If it is
// nil, price computes the amounts.
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

// amount is the amount of one resource in a shape. units is the same amount in the unit to which prices apply.
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

// units returns the quantity in the unit to which the price of the resource applies. A quantity in bytes is converted
// to GiB; any other quantity is unchanged.
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

// Cheapest returns the lowest hourly price of a node on an offer that fits. It ignores offers without a price. It
// returns 0 if no offer with a price fits.
func Cheapest(assessments []Assessment) (least money.Money) {
	for _, v := range assessments {
		if price := money.Of(v.Price); v.Fits && price > 0 && (least == 0 || price < least) {
			least = price
		}
	}
	return least
}
