package money

import (
	"maps"
	"math"
	"slices"
	"time"
)

// Money is an amount in millionths of the currency of the node groups.
type Money int64

// maxRate bounds the hourly cost of the nodes on a provider to 100 million units of the currency, so that the
// multiplication by the seconds of a day does not overflow.
const maxRate Money = 1e14

// Of returns the amount as Money, rounded to a millionth and limited to the range from 0 to maxRate.
func Of(amount float64) Money {
	if math.IsNaN(amount) {
		return maxRate
	}
	return Money(math.Round(min(max(amount, 0), 1e8) * 1e6))
}

// Float returns the amount in units of its currency.
func (m Money) Float() float64 { return float64(m) / 1e6 }

// Plus returns the sum of an amount that is not negative and any other amount. The result is limited to the largest
// value.
func (m Money) Plus(o Money) Money {
	if o < 0 {
		return m + o
	}
	return min(m, math.MaxInt64-o) + o
}

// Cost contains the cost of a group's nodes: the present hourly rate and the sums. A node costs the price that its
// offer had when the offer was chosen. It costs this price from Ready until its slice is returned. All times are UTC
// in whole seconds. The zero value means that nothing is known.
type Cost struct {
	Currency string `json:"currency,omitempty"`
	// Since is the start of the sums, and At their end.
	Since time.Time `json:"since,omitzero"`
	At    time.Time `json:"at,omitzero"`
	// Month is the cost of the past days of this month.
	Month Money `json:"month,omitempty"`
	// Unpriced is the time for which nodes without a price ran today, in seconds, summed over the nodes.
	Unpriced int64 `json:"unpriced,omitempty"`
	// Reserved is the highest hourly cost that the instances without a node can have. It is set only in a Snapshot.
	Reserved  Money                   `json:"reserved,omitempty"`
	Providers map[string]ProviderCost `json:"providers,omitempty"`
}

// ProviderCost contains the cost of a group's nodes on one provider.
type ProviderCost struct {
	// Rate is the hourly cost of the nodes with a price. Unpriced is the number of nodes without a price.
	Rate     Money `json:"rate,omitempty"`
	Nodes    int   `json:"nodes,omitempty"`
	Unpriced int   `json:"unpriced,omitempty"`
	// Today is the cost since midnight, and Total the cost since Cost.Since.
	Today Money `json:"today,omitempty"`
	Total Money `json:"total,omitempty"`
	// Remainder is the fraction that is missing in Today and Total, in 3,600ths of a unit of Money.
	Remainder int64 `json:"remainder,omitempty"`
}

// CostDay contains the cost of one day by provider.
type CostDay struct {
	Date      string           `json:"date"` // as time.DateOnly
	Providers map[string]Money `json:"providers"`
	// Unpriced is the time for which nodes without a price ran, in seconds, summed over the nodes. No sum includes
	// their cost.
	Unpriced int64 `json:"unpriced,omitempty"`
}

// These constants bound the number of stored days and providers.
const (
	CostDays = 400 // the number of past days
	// costProviders bounds the number of providers of a past day. It also bounds the number of providers of today that
	// have no nodes. The amounts of the cheapest providers of a past day are added up under OtherProviders.
	costProviders = 20
	// OtherProviders is the key of the sum of all providers without an entry of their own.
	OtherProviders = ""
)

const oneDay = 24 * time.Hour

// With returns the cost with one additional node. A node without a price costs 0.
func (p ProviderCost) With(price Money) ProviderCost {
	if p.Nodes++; price == 0 {
		p.Unpriced++
	}
	p.Rate = min(p.Rate.Plus(price), maxRate)
	return p
}

// FirstKept returns the date of the first day that is still stored at the given time.
func FirstKept(at time.Time) string { return at.Add(-CostDays * oneDay).Format(time.DateOnly) }

// Kept returns the days that are still stored at the given time, the oldest first.
func Kept(days []CostDay, at time.Time) []CostDay {
	first := FirstKept(at)
	old := 0
	for old < len(days) && days[old].Date < first {
		old++
	}
	return days[old:]
}

// Advance adds the costs until now, and returns the days with costs that have ended since At. If now is before At,
// Advance changes nothing.
func (c *Cost) Advance(now time.Time) (ended []CostDay) {
	now = now.UTC().Truncate(time.Second)
	if c.Since.IsZero() {
		c.Since, c.At = now, now
	}
	for c.At.Before(now) {
		midnight := c.At.Truncate(oneDay).Add(oneDay)
		until := now
		if midnight.Before(now) {
			until = midnight
		}
		c.charge(int64(until.Sub(c.At) / time.Second))
		if c.At = until; until.Equal(midnight) {
			ended = append(ended, c.closeDay()...)
		}
	}
	return ended
}

// charge adds the cost of the given number of seconds.
func (c *Cost) charge(seconds int64) {
	for _, id := range slices.Sorted(maps.Keys(c.Providers)) {
		p := c.Providers[id]
		parts := int64(p.Rate)*seconds + p.Remainder
		spent := Money(parts / 3600)
		p.Remainder = parts % 3600
		p.Today, p.Total = p.Today.Plus(spent), p.Total.Plus(spent)
		c.Providers[id] = p
		c.Unpriced += int64(p.Unpriced) * seconds
	}
}

// Day returns the costs of the present day until At.
func (c Cost) Day() CostDay {
	day := CostDay{Date: c.At.Format(time.DateOnly), Providers: map[string]Money{}, Unpriced: c.Unpriced}
	for _, id := range slices.Sorted(maps.Keys(c.Providers)) {
		if today := c.Providers[id].Today; today > 0 {
			day.Providers[id] = today
		}
	}
	return day
}

// closeDay starts the day whose first second is At. It returns the previous day, or nil if that day has no costs.
func (c *Cost) closeDay() []CostDay {
	day := c.Day()
	day.Date = c.At.Add(-time.Second).Format(time.DateOnly)
	c.Month, c.Unpriced = c.ThisMonth(), 0
	for _, id := range slices.Sorted(maps.Keys(c.Providers)) {
		p := c.Providers[id]
		p.Today = 0
		c.Providers[id] = p
	}
	if c.At.Day() == 1 {
		c.Month = 0
	}
	if len(day.Providers) == 0 && day.Unpriced == 0 {
		return nil
	}
	day.fold()
	return []CostDay{day}
}

// fold keeps the most expensive providers and adds up the other providers under OtherProviders.
func (d CostDay) fold() {
	for len(d.Providers) > costProviders {
		cheapest := ""
		for _, id := range slices.Sorted(maps.Keys(d.Providers)) {
			if id != OtherProviders && (cheapest == "" || d.Providers[id] < d.Providers[cheapest]) {
				cheapest = id
			}
		}
		d.Providers[OtherProviders] = d.Providers[OtherProviders].Plus(d.Providers[cheapest])
		delete(d.Providers, cheapest)
	}
}

// Until returns the cost at the given time if nothing changes until then, and the days that will have ended. A Cost
// without sums stays unchanged.
func (c Cost) Until(now time.Time) (Cost, []CostDay) {
	if c.Since.IsZero() {
		return c, nil
	}
	c.Providers = maps.Clone(c.Providers)
	ended := c.Advance(now)
	return c, ended
}

// Rate returns the hourly cost over all providers. unpriced is the number of nodes that have no price and are therefore
// not included.
func (c Cost) Rate() (rate Money, unpriced int) {
	for _, id := range slices.Sorted(maps.Keys(c.Providers)) {
		rate = rate.Plus(c.Providers[id].Rate)
		unpriced += c.Providers[id].Unpriced
	}
	return rate, unpriced
}

// ThisMonth returns the cost of the month that contains At, until At. If the sums started within this month, earlier
// costs are not included.
func (c Cost) ThisMonth() Money {
	sum := c.Month
	for _, id := range slices.Sorted(maps.Keys(c.Providers)) {
		sum = sum.Plus(c.Providers[id].Today)
	}
	return sum
}

// Run replaces the running nodes of all providers. It keeps a provider without nodes and without costs today only
// while the list has at most costProviders providers.
func (c *Cost) Run(running map[string]ProviderCost) {
	if c.Providers == nil {
		c.Providers = map[string]ProviderCost{}
	}
	for _, id := range slices.Sorted(maps.Keys(c.Providers)) {
		p, now := c.Providers[id], running[id]
		p.Rate, p.Nodes, p.Unpriced = now.Rate, now.Nodes, now.Unpriced
		if c.Providers[id] = p; p.Nodes == 0 && p.Today == 0 && len(c.Providers) > costProviders {
			delete(c.Providers, id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(running)) {
		if _, known := c.Providers[id]; !known {
			c.Providers[id] = running[id]
		}
	}
}
