package money

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Correct adds the cost of a node on a provider, for the period that begins at the parameter since and ends at c.At.
// If the parameter back is true, Correct subtracts this cost. It distributes the cost over the days of the period. It
// returns the corrected past days, and does not change the parameter days. The cost of a day, a month or in total
// never falls below zero.
func (c *Cost) Correct(days []CostDay, provider string, price Money, since time.Time, back bool) []CostDay {
	days = slices.Clone(days)
	at := since.UTC().Truncate(time.Second)
	if at.Before(c.Since) {
		at = c.Since
	}
	for price > 0 && at.Before(c.At) {
		until := at.Truncate(oneDay).Add(oneDay)
		if c.At.Before(until) {
			until = c.At
		}
		amount := price.During(until.Sub(at))
		if back {
			amount = -amount
		}
		days = c.correctDay(days, provider, at, amount)
		at = until
	}
	return days
}

// During returns the cost of a duration if m is the price per hour.
func (m Money) During(d time.Duration) Money {
	return Money(int64(m) / 3600 * int64(d/time.Second)).Plus(Money(int64(m) % 3600 * int64(d/time.Second) / 3600))
}

// correctDay adds an amount, which may be negative, to the day that contains the time in the parameter at, and to the
// sums that contain this day.
func (c *Cost) correctDay(days []CostDay, provider string, at time.Time, amount Money) []CostDay {
	if c.Providers == nil {
		c.Providers = map[string]ProviderCost{}
	}
	p, date := c.Providers[provider], at.Format(time.DateOnly)
	if date == c.At.Format(time.DateOnly) {
		amount = max(amount, -p.Today)
		p.Today += amount
	} else {
		days, amount = correctOver(days, provider, date, amount)
		if date[:len(monthOnly)] == c.At.Format(monthOnly) {
			c.Month = max(c.Month.Plus(amount), 0)
		}
	}
	p.Total = max(p.Total.Plus(amount), 0)
	c.Providers[provider] = p
	return days
}

// correctOver adds an amount to a past day. It returns the amount that it has added. It subtracts at most the cost of
// the day, so that the day does not fall below zero.
func correctOver(days []CostDay, provider, date string, amount Money) ([]CostDay, Money) {
	n, known := slices.BinarySearchFunc(days, date, func(d CostDay, date string) int {
		return strings.Compare(d.Date, date)
	})
	switch {
	case !known && amount < 0:
		return days, 0
	case !known:
		days = slices.Insert(days, n, CostDay{Date: date})
	}
	sums := maps.Clone(days[n].Providers)
	if sums == nil {
		sums = map[string]Money{}
	}
	if _, apart := sums[provider]; !apart && amount < 0 {
		provider = OtherProviders
	}
	amount = max(amount, -sums[provider])
	sums[provider] = sums[provider].Plus(amount)
	days[n].Providers = sums
	return days, amount
}
