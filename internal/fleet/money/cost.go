package money

import (
	"maps"
	"math"
	"slices"
	"time"
)

// Money is an amount in millionths of the currency of the node groups.
type Money int64

// maxRate bounds what the nodes on a provider cost in an hour, so that a day's product does not overflow: 100 million.
const maxRate Money = 1e14

// Of is the amount, rounded to a millionth, between 0 and maxRate.
func Of(amount float64) Money {
	if math.IsNaN(amount) {
		return maxRate
	}
	return Money(math.Round(min(max(amount, 0), 1e8) * 1e6))
}

// Float is the amount in units of its currency.
func (m Money) Float() float64 { return float64(m) / 1e6 }

// Plus is the sum of an amount that is not negative and any other. It stops at the largest value.
func (m Money) Plus(o Money) Money {
	if o < 0 {
		return m + o
	}
	return min(m, math.MaxInt64-o) + o
}

// Cost is what the nodes of a group cost: per hour now, and summed up. A node costs from Ready until its slice is back,
// what its offer said when it was chosen. All times are UTC in whole seconds. The zero value is that nothing is known.
type Cost struct {
	Currency string `json:"currency,omitempty"`
	// Since is from when there are sums, At until when.
	Since time.Time `json:"since,omitzero"`
	At    time.Time `json:"at,omitzero"`
	// Month is what those days of this month came to that are over.
	Month Money `json:"month,omitempty"`
	// Unpriced is how long nodes without a price ran today, in seconds.
	Unpriced int64 `json:"unpriced,omitempty"`
	// Reserved is what instances on their way may come to in an hour. Only in a Snapshot.
	Reserved  Money                   `json:"reserved,omitempty"`
	Providers map[string]ProviderCost `json:"providers,omitempty"`
}

// ProviderCost is what a group's nodes on one provider cost.
type ProviderCost struct {
	// Rate is per hour, of the nodes whose price is known; Unpriced is how many of the Nodes have none.
	Rate     Money `json:"rate,omitempty"`
	Nodes    int   `json:"nodes,omitempty"`
	Unpriced int   `json:"unpriced,omitempty"`
	// Today is since midnight, Total since Cost.Since.
	Today Money `json:"today,omitempty"`
	Total Money `json:"total,omitempty"`
	// Remainder is what both lack, in parts of Money that come to one in 3,600.
	Remainder int64 `json:"remainder,omitempty"`
}

// CostDay is what one day came to, by provider.
type CostDay struct {
	Date      string           `json:"date"` // as time.DateOnly
	Providers map[string]Money `json:"providers"`
	// Unpriced is how long nodes ran that are not in the sums, because they had no price: in seconds, of all together.
	Unpriced int64 `json:"unpriced,omitempty"`
}

// Bounds of what is kept.
const (
	CostDays = 400 // that are over
	// costProviders bounds the providers of a day that is over, and those without nodes of today: the cheapest days of
	// the others are added up under OtherProviders.
	costProviders = 20
	// OtherProviders stands for the providers that are not kept apart.
	OtherProviders = ""
)

const oneDay = 24 * time.Hour

// With is the cost with one node more; one without a price costs 0.
func (p ProviderCost) With(price Money) ProviderCost {
	if p.Nodes++; price == 0 {
		p.Unpriced++
	}
	p.Rate = min(p.Rate.Plus(price), maxRate)
	return p
}

// FirstKept returns the date of the first day that is kept at a time.
func FirstKept(at time.Time) string { return at.Add(-CostDays * oneDay).Format(time.DateOnly) }

// Kept are the days that are remembered at a time, the oldest first.
func Kept(days []CostDay, at time.Time) []CostDay {
	first := FirstKept(at)
	old := 0
	for old < len(days) && days[old].Date < first {
		old++
	}
	return days[old:]
}

// Advance sums up until now, and returns the days with costs that ended on the way. A past time changes nothing.
func (c *Cost) Advance(now time.Time) (over []CostDay) {
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
			over = append(over, c.closeDay()...)
		}
	}
	return over
}

// charge adds what seconds cost.
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

// Day is today's, until At.
func (c Cost) Day() CostDay {
	day := CostDay{Date: c.At.Format(time.DateOnly), Providers: map[string]Money{}, Unpriced: c.Unpriced}
	for _, id := range slices.Sorted(maps.Keys(c.Providers)) {
		if today := c.Providers[id].Today; today > 0 {
			day.Providers[id] = today
		}
	}
	return day
}

// closeDay begins the day that At is the first second of. A day without costs is none.
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

// fold keeps the dearest providers apart, and adds the others up.
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

// Until is the cost as it is at a time, if nothing changes before, and the days that have ended by then. Where nothing
// is known nothing will be.
func (c Cost) Until(now time.Time) (Cost, []CostDay) {
	if c.Since.IsZero() {
		return c, nil
	}
	c.Providers = maps.Clone(c.Providers)
	over := c.Advance(now)
	return c, over
}

// Rate is per hour, over all providers; unpriced is how many nodes are not in it because they have no price.
func (c Cost) Rate() (rate Money, unpriced int) {
	for _, id := range slices.Sorted(maps.Keys(c.Providers)) {
		rate = rate.Plus(c.Providers[id].Rate)
		unpriced += c.Providers[id].Unpriced
	}
	return rate, unpriced
}

// ThisMonth is what At's month came to until At, as far as there are sums.
func (c Cost) ThisMonth() Money {
	sum := c.Month
	for _, id := range slices.Sorted(maps.Keys(c.Providers)) {
		sum = sum.Plus(c.Providers[id].Today)
	}
	return sum
}

// Run replaces what runs by provider. Providers without nodes and costs today are kept as long as there is room.
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
