package money_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
)

func moment(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	require.NoError(t, err)
	return at
}

// costing returns the costs of nodes on milan from a time on.
func costing(at time.Time, hourly float64) money.Cost {
	var c money.Cost
	c.Advance(at)
	c.Providers = map[string]money.ProviderCost{"milan": {Rate: money.Of(hourly), Nodes: 1}}
	return c
}

// Days and months begin at midnight UTC, regardless of the time zone of the clock. A day without costs is left out.
func TestCostsOfDaysAndMonths(t *testing.T) {
	for name, c := range map[string]struct {
		from, to string
		hourly   float64
		days     string
		today    float64
		month    float64
	}{
		"within a day":            {"2026-11-10T08:00:00Z", "2026-11-10T20:00:00Z", 2, "", 24, 24},
		"over midnight":           {"2026-11-10T23:00:00Z", "2026-11-11T02:00:00Z", 2, "2026-11-10=2 ", 4, 6},
		"at midnight":             {"2026-11-10T23:00:00Z", "2026-11-11T00:00:00Z", 2, "2026-11-10=2 ", 0, 2},
		"over the end of a month": {"2026-11-30T23:00:00Z", "2026-12-01T02:00:00Z", 2, "2026-11-30=2 ", 4, 4},
		"at the end of a month":   {"2026-11-30T22:00:00Z", "2026-12-01T00:00:00Z", 2, "2026-11-30=4 ", 0, 0},
		"over the end of a year":  {"2026-12-31T00:00:00Z", "2027-01-01T01:00:00Z", 1, "2026-12-31=24 ", 1, 1},
		"a leap day": {"2028-02-28T12:00:00Z", "2028-03-01T00:30:00Z", 1, "2028-02-28=12 2028-02-29=24 ", .5,
			.5},
		"several days": {"2026-11-10T12:00:00Z", "2026-11-12T12:00:00Z", 1, "2026-11-10=12 2026-11-11=24 ", 12,
			48},
		"in another zone":            {"2026-11-11T00:30:00+02:00", "2026-11-11T03:00:00+02:00", 2, "2026-11-10=3 ", 2, 5},
		"nothing known of the price": {"2026-11-10T12:00:00Z", "2026-11-12T12:00:00Z", 0, "", 0, 0},
		"parts of a second":          {"2026-11-10T08:00:00.9Z", "2026-11-10T08:00:01.1Z", 3600, "", 1, 1},
		"a clock that goes back":     {"2026-11-10T08:00:00Z", "2026-11-10T07:00:00Z", 2, "", 0, 0},
		"less than a part a second":  {"2026-11-10T08:00:00Z", "2026-11-10T09:00:00Z", 0.000001, "", 0.000001, 0.000001},
		"as dear as it may be a day": {"2026-11-10T00:00:00Z", "2026-11-10T23:59:59Z", 1e8, "", 1e8 / 3600. * 86399,
			1e8 / 3600. * 86399},
		"dearer than it may be a day": {"2026-11-10T00:00:00Z", "2026-11-10T01:00:00Z", 1e12, "", 1e8, 1e8},
	} {
		t.Run(name, func(t *testing.T) {
			cost := costing(moment(t, c.from), c.hourly)
			to := moment(t, c.to)
			later, days := cost.Until(to)
			require.Equal(t, moment(t, c.from).Unix(), cost.At.Unix(), "the cost itself is as it was")
			require.Zero(t, cost.Providers["milan"].Today)
			text := ""
			for _, d := range days {
				text += fmt.Sprintf("%s=%g ", d.Date, d.Providers["milan"].Float())
			}
			require.Equal(t, c.days, text)
			require.InDelta(t, c.today, later.Providers["milan"].Today.Float(), 1e-6)
			require.InDelta(t, c.month, later.ThisMonth().Float(), 1e-6)
			require.Zero(t, later.At.Nanosecond())
			require.Equal(t, time.UTC, later.At.Location())
		})
	}
}

// A past day keeps the twenty most expensive providers separately. It adds up the other providers.
func TestDayKeepsItsMostExpensiveProviders(t *testing.T) {
	for providers, apart := range map[int]int{19: 19, 20: 20, 21: 19, 30: 19} {
		from := moment(t, "2026-11-10T00:00:00Z")
		cost := costing(from, 1)
		cost.Providers = map[string]money.ProviderCost{}
		for n := range providers {
			cost.Providers[fmt.Sprintf("p%02d", n)] = money.ProviderCost{Rate: money.Of(float64(n + 1)), Nodes: 1}
		}
		_, days := cost.Until(from.AddDate(0, 0, 1))
		require.Len(t, days, 1)
		others, folded := days[0].Providers[money.OtherProviders]
		delete(days[0].Providers, money.OtherProviders)
		require.Len(t, days[0].Providers, apart, providers)
		require.Equal(t, apart < providers, folded)
		sum := 0
		for n := range providers - apart {
			sum += 24 * (n + 1)
		}
		require.InDelta(t, sum, others.Float(), 1e-6, "the cheapest ones")
	}
}

// The sum is the same to the last millionth, however many additions lead to it.
func TestCostsAddUpExactly(t *testing.T) {
	from := moment(t, "2026-11-10T00:00:00Z")
	often, once := costing(from, 0.012345), costing(from, 0.012345)
	for at := from; at.Before(from.Add(9 * time.Hour)); at = at.Add(700 * time.Millisecond) {
		often.Advance(at)
	}
	often.Advance(from.Add(9 * time.Hour))
	once.Advance(from.Add(9 * time.Hour))
	require.Equal(t, once, often)
	require.Equal(t, money.Of(9*0.012345), once.Providers["milan"].Total)
}

// A sum does not overflow: it stops at the largest value.
func TestCostsStopAtTheLargest(t *testing.T) {
	cost := costing(moment(t, "2026-01-01T00:00:00Z"), 1e8)
	cost.Advance(moment(t, "2066-01-01T10:00:00Z"))
	require.Equal(t, money.Unbounded, cost.Providers["milan"].Total)
	require.Positive(t, cost.ThisMonth())
}

// The running time of nodes without a price is counted separately for each day.
func TestNodesWithoutAPriceAreCountedByTime(t *testing.T) {
	from := moment(t, "2026-11-10T22:00:00Z")
	var cost money.Cost
	cost.Advance(from)
	cost.Run(map[string]money.ProviderCost{
		"milan": money.ProviderCost{}.With(0).With(money.Of(2)).With(0), "turin": money.ProviderCost{}.With(0)})
	rate, unpriced := cost.Rate()
	require.Equal(t, money.Of(2), rate)
	require.Equal(t, 3, unpriced)
	require.Equal(t, 3, cost.Providers["milan"].Nodes)
	later, days := cost.Until(from.Add(time.Hour))
	require.Empty(t, days)
	require.Equal(t, int64(3*3600), later.Day().Unpriced)
	later, days = cost.Until(from.Add(3 * time.Hour))
	require.Equal(t, int64(3*3600), later.Unpriced, "since midnight")
	require.Equal(t, []money.CostDay{{Date: "2026-11-10", Providers: map[string]money.Money{"milan": money.Of(4)},
		Unpriced: 6 * 3600}}, days)
	_, days = cost.Until(from.Add(50 * time.Hour))
	require.Len(t, days, 3)

	cost.Run(map[string]money.ProviderCost{"turin": money.ProviderCost{}.With(0)})
	_, days = cost.Until(from.Add(3 * time.Hour))
	require.Len(t, days, 1, "a day without a price is one")
}

// The smallest amount is one millionth. It is shown, and a day with this amount is kept.
func TestSmallestAmountIsShown(t *testing.T) {
	from := moment(t, "2026-11-10T23:00:00Z")
	later, days := costing(from, 0.000001).Until(from.Add(time.Hour))
	require.Equal(t, map[string]money.Money{"milan": 1}, days[0].Providers)
	require.Empty(t, later.Day().Providers)
	require.Equal(t, money.Unbounded, money.Unbounded.Plus(0))
	require.Equal(t, money.Unbounded, money.Unbounded.Plus(1))
	require.Equal(t, money.Money(3), money.Money(1).Plus(2))
}

func TestPastDaysAreKeptFor400Days(t *testing.T) {
	at := moment(t, "2027-12-31T12:00:00Z")
	day := func(ago int) money.CostDay { return money.CostDay{Date: at.AddDate(0, 0, -ago).Format(time.DateOnly)} }
	days := []money.CostDay{day(402), day(401), day(400), day(1)}
	require.Equal(t, []money.CostDay{day(400), day(1)}, money.Kept(days, at))
	require.Empty(t, money.Kept([]money.CostDay{day(401)}, at))
}

// A provider without nodes is kept while it has costs today. Afterwards it is kept while there are at most twenty
// providers.
func TestProvidersWithCostsAreKept(t *testing.T) {
	for name, c := range map[string]struct {
		others int
		was    money.ProviderCost
		runs   int
		kept   bool
	}{
		"there is room":       {19, money.ProviderCost{Total: 1}, 0, true},
		"there is none":       {20, money.ProviderCost{Total: 1}, 0, false},
		"it has costs today":  {20, money.ProviderCost{Today: 1}, 0, true},
		"it has nodes":        {20, money.ProviderCost{Nodes: 1}, 1, true},
		"its nodes have gone": {20, money.ProviderCost{Nodes: 1, Unpriced: 1, Rate: 1}, 0, false},
	} {
		cost := money.Cost{Providers: map[string]money.ProviderCost{"milan": c.was}}
		running := map[string]money.ProviderCost{}
		for n := range c.others {
			running[fmt.Sprint("p", n)] = money.ProviderCost{}.With(1)
		}
		cost.Run(running)
		if c.runs > 0 {
			running["milan"] = money.ProviderCost{}.With(7)
		}
		cost.Run(running)
		is, kept := cost.Providers["milan"]
		require.Equal(t, c.kept, kept, name)
		require.Equal(t, c.runs, is.Nodes, name)
		require.Equal(t, money.Money(7*c.runs), is.Rate, name)
	}
}
