package fleet

import (
	"cmp"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
)

// count brings the sums up to now, by what ran until now.
func (l *Ledger) count(now time.Time) {
	l.CostDays = money.Kept(append(l.CostDays, l.Cost.Advance(now)...), l.Cost.At)
}

// meter sets what runs from now on. Sums in another currency are forgotten: nobody could add to them.
func (l *Ledger) meter(now time.Time) {
	if l.Spec == nil {
		return
	}
	if currency := l.Spec.CurrencyOrDefault(); l.Cost.Currency != currency {
		if l.Cost.Currency != "" {
			l.Cost, l.CostDays = money.Cost{}, nil
			l.Cost.Advance(now)
		}
		l.Cost.Currency = currency
	}
	running := map[string]money.ProviderCost{}
	for _, e := range l.Entries {
		if e.costs() {
			running[e.Provider()] = running[e.Provider()].With(e.price(l.Cost.Currency))
		}
	}
	l.Cost.Run(running)
}

// costs reports whether a provider has the instance's slice, as far as the group knows.
func (e *Entry) costs() bool { return (e.Phase == Ready || e.Phase.Shrinking()) && e.Offer != nil }

// price is what the instance costs in an hour, in millionths of a currency; 0 when that is not known.
func (e *Entry) price(currency string) money.Money {
	if e.Spec.CurrencyOrDefault() != currency {
		return 0
	}
	return money.Of(e.Offer.Hourly)
}

// reserved is what the instances that are on their way may come to in an hour; one that is given back may have got as
// far as any.
func (l *Ledger) reserved() (sum money.Money) {
	for _, e := range l.Entries {
		if e.Phase != Failed && e.Phase != Released && !e.costs() {
			sum = sum.Plus(money.Of(e.PriceCap))
		}
	}
	return sum
}

// cost is what the group publishes of its costs.
func (l *Ledger) cost() money.Cost {
	c, _ := l.Cost.Until(l.Cost.At)
	c.Reserved = l.reserved()
	if l.Spec != nil {
		c.Currency = cmp.Or(c.Currency, l.Spec.CurrencyOrDefault())
	}
	return c
}
