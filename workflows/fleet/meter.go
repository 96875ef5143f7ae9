package fleet

import (
	"cmp"
	"time"
)

// count brings the sums up to now, by what ran until now.
func (l *Ledger) count(now time.Time) {
	l.CostDays = append(l.CostDays, l.Cost.Advance(now)...)
	first := l.Cost.At.Add(-CostDays * oneDay).Format(time.DateOnly)
	old := 0
	for old < len(l.CostDays) && l.CostDays[old].Date < first {
		old++
	}
	l.CostDays = l.CostDays[old:]
}

// meter sets what runs from now on. Sums in another currency are forgotten: nobody could add to them.
func (l *Ledger) meter(now time.Time) {
	if l.Spec == nil {
		return
	}
	if currency := l.Spec.CurrencyOrDefault(); l.Cost.Currency != currency {
		if l.Cost.Currency != "" {
			l.Cost, l.CostDays = Cost{}, nil
			l.Cost.Advance(now)
		}
		l.Cost.Currency = currency
	}
	running := map[string]ProviderCost{}
	for _, e := range l.Entries {
		if e.costs() {
			p := running[e.Provider()]
			price := e.price(l.Cost.Currency)
			if p.Nodes++; price == 0 {
				p.Unpriced++
			}
			p.Rate = min(p.Rate.plus(price), maxRate)
			running[e.Provider()] = p
		}
	}
	l.Cost.run(running)
}

// run replaces what runs by provider. Providers without nodes and costs today are kept as long as there is room.
func (c *Cost) run(running map[string]ProviderCost) {
	if c.Providers == nil && len(running) > 0 {
		c.Providers = map[string]ProviderCost{}
	}
	for _, id := range sortedKeys(c.Providers) {
		p, now := c.Providers[id], running[id]
		p.Rate, p.Nodes, p.Unpriced = now.Rate, now.Nodes, now.Unpriced
		if c.Providers[id] = p; p.Nodes == 0 && p.Today == 0 && len(c.Providers) > costProviders {
			delete(c.Providers, id)
		}
	}
	for _, id := range sortedKeys(running) {
		if _, known := c.Providers[id]; !known {
			c.Providers[id] = running[id]
		}
	}
}

// costs reports whether a provider has the instance's slice, as far as the group knows.
func (e *Entry) costs() bool {
	return (e.Phase == Ready || e.Phase.Shrinking()) && e.Offer != nil
}

// price is what the instance costs in an hour, in millionths of a currency; 0 when that is not known.
func (e *Entry) price(currency string) Money {
	if e.Spec.CurrencyOrDefault() != currency {
		return 0
	}
	return MoneyOf(e.Offer.Hourly)
}

// reserved is what the instances that are on their way may come to in an hour; one that is given back may have got as
// far as any.
func (l *Ledger) reserved() (sum Money) {
	for _, e := range l.Entries {
		if e.Phase != Failed && e.Phase != Released && !e.costs() {
			sum = sum.plus(MoneyOf(e.PriceCap))
		}
	}
	return sum
}

// cost is what the group publishes of its costs.
func (l *Ledger) cost() Cost {
	c, _ := l.Cost.Until(l.Cost.At)
	c.Reserved = l.reserved()
	if l.Spec != nil {
		c.Currency = cmp.Or(c.Currency, l.Spec.CurrencyOrDefault())
	}
	return c
}
