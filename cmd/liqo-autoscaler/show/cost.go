package show

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/natsort"
)

// Cost contains the costs of a group's nodes, in units of the currency. They are the costs until the time At.
type Cost struct {
	Currency string `json:"currency"`
	// Account is the account to which the costs belong. It is "" for the group's own account.
	Account string    `json:"account,omitempty"`
	Since   time.Time `json:"since"` // start of the time that the sums cover
	At      time.Time `json:"at"`
	// PerHour is the hourly cost of the nodes whose price is known. Unpriced is the number of the other nodes.
	PerHour   float64        `json:"perHour"`
	Unpriced  int            `json:"unpriced,omitempty"`
	ThisMonth float64        `json:"thisMonth"` // in UTC
	Providers []ProviderCost `json:"providers,omitempty"`
	// Limits compares each spending limit with the costs of all groups of the account.
	Limits []money.Reach `json:"limits,omitempty"`
}

// ProviderCost contains the costs of a group's nodes on one provider.
type ProviderCost struct {
	Provider string  `json:"provider"`
	PerHour  float64 `json:"perHour"`
	Unpriced int     `json:"unpriced,omitempty"`
	Today    float64 `json:"today"`
	SoFar    float64 `json:"soFar"` // since Cost.Since
}

// costOf returns the cost in the snapshot. It compares the limits with the balance of the account. It returns nil if
// the snapshot has no cost.
func costOf(s fleet.Snapshot, b money.Balance) *Cost {
	if s.Cost.Since.IsZero() {
		return nil
	}
	rate, unpriced := s.Cost.Rate()
	c := &Cost{Currency: s.Cost.Currency, Since: s.Cost.Since.UTC(), At: s.Cost.At.UTC(), PerHour: rate.Float(),
		Unpriced: unpriced, ThisMonth: s.Cost.ThisMonth().Float()}
	for _, id := range slices.SortedFunc(maps.Keys(s.Cost.Providers), natsort.Compare) {
		p := s.Cost.Providers[id]
		c.Providers = append(c.Providers, ProviderCost{Provider: id, PerHour: p.Rate.Float(), Unpriced: p.Unpriced,
			Today: p.Today.Float(), SoFar: p.Total.Float()})
	}
	if s.Spec != nil {
		c.Limits = s.Spec.Spending.Reaches(b)
		if account := s.Spec.Account(); account != s.Group {
			c.Account = account
		}
	}
	return c
}

// cells returns the table cells with the hourly cost, the cost of this month, and the limits that are reached.
func (c *Cost) cells() []string {
	if c == nil {
		return []string{"", "", ""}
	}
	var reached []string
	for _, l := range c.Limits {
		if l.Reached {
			reached = append(reached, l.Level+" "+l.Period)
		}
	}
	return []string{perHour(c.PerHour, c.Unpriced, c.Currency), inCurrency(c.ThisMonth, c.Currency),
		strings.Join(reached, ",")}
}

// perHour renders an hourly rate and the number of nodes with an unknown price.
func perHour(rate float64, unpriced int, currency string) string {
	if unpriced > 0 && rate != 0 {
		return fmt.Sprintf("%s and %d unknown", inCurrency(rate, currency), unpriced)
	}
	return sum(rate, unpriced, currency)
}

// sum renders an amount. If the amount is 0 and nodes without a known price exist, sum renders it as "unknown".
func sum(amount float64, unpriced int, currency string) string {
	if amount == 0 && unpriced > 0 {
		return "unknown"
	}
	return inCurrency(amount, currency)
}

func inCurrency(amount float64, currency string) string {
	return fmt.Sprintf("%.2f %s", amount, currency)
}
