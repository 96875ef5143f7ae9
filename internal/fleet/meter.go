package fleet

import (
	"cmp"
	"slices"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
)

// count adds the costs of the running nodes since the last call to the sums.
func (l *Ledger) count(now time.Time) {
	ended := l.Cost.Advance(now)
	if len(ended) > 0 {
		l.Revision++ // a reader adds the published cost of the present day to the past days
	}
	days := append(l.CostDays, ended...)
	if l.CostDays = money.Kept(days, l.Cost.At); len(l.CostDays) < len(days) {
		l.CostFrom = money.FirstKept(l.Cost.At)
	}
}

// meter sets the nodes that cause costs from now on. After a change of the currency it discards the old sums, because
// amounts in different currencies cannot be added.
func (l *Ledger) meter(now time.Time) {
	if l.Spec == nil {
		return
	}
	if currency := l.Spec.CurrencyOrDefault(); l.Cost.Currency != currency {
		if l.Cost.Currency != "" {
			l.Cost, l.CostDays, l.CostFrom = money.Cost{}, nil, ""
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

// Gap is the time between the last step of a lost or reverted history and the end of the recovery.
type Gap struct {
	Since time.Time `json:"since"`
	// Position is the position of the history before the gap.
	Position Position `json:"position"`
}

// Bill returns the costs of the group from the start of its sums until now.
func (l *Ledger) Bill(now time.Time) money.Bill {
	b := money.Bill{Group: l.Group, Account: l.Group, From: l.CostFrom, Epoch: l.Epoch, Revision: l.Revision,
		Booked: l.NextSeq}
	var ended []money.CostDay
	b.Cost, ended = l.cost().Until(now)
	b.Days = slices.Concat(l.CostDays, ended)
	if l.Spec != nil {
		b.Account = l.Spec.Account()
	}
	return b
}

// closeGap adds the costs of the gap that the loss or revert of the group's history has left. If the sums that the
// observer has saved are more complete than the group's sums, the saved sums replace them. Each instance that exists is
// charged for the rest of the gap. An instance that was not found is not charged for the gap.
func (l *Ledger) closeGap(saved *money.Bill, now time.Time) {
	gap := l.Gap
	l.Gap = nil
	if saved != nil && saved.Group == l.Group && !saved.Cost.Since.IsZero() && gap.lacks(*saved, l.Cost.Since) {
		settled := saved.Settled()
		l.Cost, l.CostDays, l.CostFrom = settled.Cost, slices.Clone(settled.Days), settled.From
		gap = &Gap{Since: settled.Cost.At}
		l.count(now) // no node is charged; this only ends the past days
	}
	if gap == nil || gap.Since.IsZero() {
		return
	}
	for _, e := range l.Entries {
		if e.costs() {
			since := Later(gap.Since, e.BookedAt)
			l.CostDays = l.Cost.Correct(l.CostDays, e.Provider(), e.price(l.Cost.Currency), since, false)
		}
	}
}

// lacks reports whether a saved bill is more complete than the history before the gap. The gap is nil when the whole
// history was lost. The bill of an ended group is used only if its sums started at the time in the parameter since.
func (g *Gap) lacks(saved money.Bill, since time.Time) bool {
	if saved.Ended && (g == nil || !saved.Cost.Since.Equal(since)) {
		return false
	}
	return g == nil || g.Position.Behind(Position{Epoch: saved.Epoch, Revision: saved.Revision, Booked: saved.Booked})
}

// refund subtracts the amounts that were counted for a Ready instance since its slice last existed.
func (l *Ledger) refund(e *Entry) {
	if e.Gone == nil || !e.costs() {
		return
	}
	l.CostDays = l.Cost.Correct(l.CostDays, e.Provider(), e.price(l.Cost.Currency), Later(*e.Gone, e.Since), true)
	e.Settled = true
}

// costs reports whether the instance causes costs: as far as the group knows, a provider has its slice.
func (e *Entry) costs() bool {
	return (e.Phase == Ready || e.Phase.Shrinking()) && e.Offer != nil && !e.Settled
}

// price returns the hourly price of the instance in millionths of a currency; 0 when it is not known.
func (e *Entry) price(currency string) money.Money {
	if e.Spec.CurrencyOrDefault() != currency {
		return 0
	}
	return money.Of(e.Offer.Hourly)
}

// reserved returns the highest hourly cost that the instances without a node can have. It includes instances that are
// being removed, because their nodes may already exist.
func (l *Ledger) reserved() (sum money.Money) {
	for _, e := range l.Entries {
		if e.Phase != Failed && e.Phase != Released && !e.costs() {
			sum = sum.Plus(money.Of(e.PriceCap))
		}
	}
	return sum
}

// cost returns the costs that the group publishes.
func (l *Ledger) cost() money.Cost {
	c, _ := l.Cost.Until(l.Cost.At)
	c.Reserved = l.reserved()
	if l.Spec != nil {
		c.Currency = cmp.Or(c.Currency, l.Spec.CurrencyOrDefault())
	}
	return c
}
