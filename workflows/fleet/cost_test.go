package fleet_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

func moment(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	require.NoError(t, err)
	return at
}

// costing is what nodes on milan cost from a moment on.
func costing(at time.Time, hourly float64) fleet.Cost {
	var c fleet.Cost
	c.Advance(at)
	c.Providers = map[string]fleet.ProviderCost{"milan": {Rate: fleet.MoneyOf(hourly), Nodes: 1}}
	return c
}

// Days and months begin at midnight UTC, wherever the clock is; a day without costs is none.
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

// However often it is added up, the sum is the same to the last millionth.
func TestCostsAddUpExactly(t *testing.T) {
	from := moment(t, "2026-11-10T00:00:00Z")
	often, once := costing(from, 0.012345), costing(from, 0.012345)
	for at := from; at.Before(from.Add(9 * time.Hour)); at = at.Add(700 * time.Millisecond) {
		often.Advance(at)
	}
	often.Advance(from.Add(9 * time.Hour))
	once.Advance(from.Add(9 * time.Hour))
	require.Equal(t, once, often)
	require.Equal(t, fleet.MoneyOf(9*0.012345), once.Providers["milan"].Total)
}

// A group keeps 400 days that are over, and of each the dearest providers apart.
func TestCostsAreBounded(t *testing.T) {
	from := moment(t, "2026-01-01T00:00:00Z")
	l := &fleet.Ledger{Group: "a", Epoch: "t0", Spec: storySpec()}
	l.Restore().Step(fleet.GroupInput{}, from)
	const providers = 60
	l.Cost.Providers = map[string]fleet.ProviderCost{}
	for n := range providers {
		l.Cost.Providers[fmt.Sprintf("%063d", n)] = fleet.ProviderCost{Rate: fleet.Money(1_234_567 + n), Nodes: 1}
	}
	for day := 1; day <= 500; day++ {
		over := l.Cost.Advance(from.AddDate(0, 0, day)) // Step would see that nothing runs
		l.CostDays = append(l.CostDays, over...)
	}
	var total, days fleet.Money
	for _, p := range l.Cost.Providers {
		total += p.Total
	}
	for _, d := range l.CostDays {
		require.LessOrEqual(t, len(d.Providers), 21)
		require.NotContains(t, d.Providers, fmt.Sprintf("%063d", 0), "the cheapest are added up")
		for _, m := range d.Providers {
			days += m
		}
	}
	require.Equal(t, total, days)
	l.Step(fleet.GroupInput{}, from.AddDate(0, 0, 500))
	require.Len(t, l.CostDays, fleet.CostDays)
	require.Equal(t, from.AddDate(0, 0, 100).Format(time.DateOnly), l.CostDays[0].Date)
	require.Len(t, l.Cost.Providers, 20, "of those without nodes some are kept")
	packed, err := fleet.Encode(l.CostDays)
	require.NoError(t, err)
	require.Less(t, len(packed), 200<<10)
}

// A sum does not overflow.
func TestCostsStopAtTheLargest(t *testing.T) {
	cost := costing(moment(t, "2026-01-01T00:00:00Z"), 1e8)
	cost.Advance(moment(t, "2066-01-01T10:00:00Z"))
	require.Equal(t, fleet.Unbounded, cost.Providers["milan"].Total)
	require.Positive(t, cost.ThisMonth())
}

// Sums in another currency are not added to; a node that was booked in it has no price from then on.
func TestCostsInAnotherCurrency(t *testing.T) {
	at := moment(t, "2026-11-10T00:00:00Z")
	l := costly(t, at, 2)
	l.Step(fleet.GroupInput{}, at.Add(30*time.Hour))
	require.Len(t, l.CostDays, 1)
	s := storySpec()
	s.Currency = "EUR"
	require.NoError(t, l.Operate(fleet.Configure, fleet.Request{Spec: s}, at.Add(30*time.Hour)))
	l.Step(fleet.GroupInput{}, at.Add(31*time.Hour))
	require.Empty(t, l.CostDays)
	require.Equal(t, fleet.Cost{Currency: "EUR", Since: at.Add(31 * time.Hour), At: at.Add(31 * time.Hour),
		Providers: map[string]fleet.ProviderCost{"milan": {Nodes: 1, Unpriced: 1}}}, l.Cost)
}

// costly is a group with one node, which costs so much an hour from then on.
func costly(t *testing.T, at time.Time, hourly float64) *fleet.Ledger {
	t.Helper()
	l := &fleet.Ledger{Group: "a", Epoch: "t0", Spec: storySpec()}
	l.Restore()
	require.NoError(t, l.Operate(fleet.Grow, fleet.Request{Delta: 1,
		Operation: fleet.Operation{ID: "1", GiveUpAt: at.Add(time.Hour)}}, at))
	l.Step(fleet.GroupInput{}, at)
	e := l.Entries[0]
	l.Step(fleet.GroupInput{Views: []fleet.View{{Instance: e.Name, Generation: e.Driver.Generation, Sequence: 9,
		Phase: fleet.Ready, Attempt: 1, Offer: &fleet.Offer{Name: "milan", Provider: "milan", Hourly: hourly},
		End: fleet.EndFinal}}}, at)
	return l
}

// What a group has summed up survives the end of a run, and its history going back.
func TestCostsSurvive(t *testing.T) {
	at := moment(t, "2026-11-30T20:00:00Z")
	l := costly(t, at, 2)
	l.Step(fleet.GroupInput{}, at.Add(6*time.Hour))
	text, err := json.Marshal(l)
	require.NoError(t, err)
	var again fleet.Ledger
	require.NoError(t, json.Unmarshal(text, &again))
	again.Restore().Step(fleet.GroupInput{}, at.Add(7*time.Hour))
	l.Step(fleet.GroupInput{}, at.Add(7*time.Hour))
	require.Equal(t, l.Cost, again.Cost)
	require.Equal(t, l.CostDays, again.CostDays)
	require.Equal(t, fleet.MoneyOf(14), l.Cost.Providers["milan"].Total)

	behind := fleet.Request{Seen: fleet.Position{Epoch: l.Epoch, Revision: 1000}, Spec: storySpec()}
	_ = again.Operate(fleet.Configure, behind, at.Add(8*time.Hour))
	require.True(t, again.Recovering)
	require.Equal(t, l.CostDays, again.CostDays)
	require.Equal(t, l.Cost.Since, again.Cost.Since)
}

// What recovery finds costs what its booking says; one without a price is unknown, and not free.
func TestCostsOfWhatIsFound(t *testing.T) {
	s := storySpec()
	at := moment(t, "2026-11-10T00:00:00Z")
	found := func(seq int, b fleet.Booking) fleet.Found {
		return fleet.Found{Booking: &b, Slice: true, Virtual: true, Marked: true, Node: true, Stamped: true, Ready: true,
			Attempt: fleet.Attempt{Group: "a", Instance: fleet.InstanceName("a", "t0", seq), Number: 1,
				Provider: fleet.Provider{ID: "milan"}}}
	}
	l := fleet.NewLedger("a", at)
	l.Step(fleet.GroupInput{Result: &fleet.Result{ID: 1, Outcome: fleet.OutcomeDone, Found: fleet.Founds{
		found(1, fleet.Booking{Spec: *s, BookedAt: at, Hourly: 0.25}),
		found(2, fleet.Booking{Spec: *s, BookedAt: at})}}}, at.Add(time.Hour))
	require.NoError(t, l.Operate(fleet.Configure, fleet.Request{Spec: s}, at.Add(time.Hour)))
	l.Step(fleet.GroupInput{}, at.Add(time.Hour))
	require.Equal(t, fleet.ProviderCost{Rate: fleet.MoneyOf(0.25), Nodes: 2, Unpriced: 1}, l.Cost.Providers["milan"])
	require.Equal(t, l.Cost.Providers, l.Snapshot(at.Add(time.Hour)).Cost.Providers)
}
