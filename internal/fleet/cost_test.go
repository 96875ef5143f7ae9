package fleet_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
)

func moment(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	require.NoError(t, err)
	return at
}

// A group keeps 400 past days. For each day it keeps the most expensive providers separately.
func TestPastCostsAreBounded(t *testing.T) {
	from := moment(t, "2026-01-01T00:00:00Z")
	l := &fleet.Ledger{Group: "a", Epoch: "t0", Spec: storySpec()}
	l.Restore().Step(fleet.GroupInput{}, from)
	const providers = 60
	l.Cost.Providers = map[string]money.ProviderCost{}
	for n := range providers {
		l.Cost.Providers[fmt.Sprintf("%063d", n)] = money.ProviderCost{Rate: money.Money(1_234_567 + n), Nodes: 1}
	}
	for day := 1; day <= 500; day++ {
		over := l.Cost.Advance(from.AddDate(0, 0, day)) // instead of Step, which would find that no node runs
		l.CostDays = append(l.CostDays, over...)
	}
	var total, days money.Money
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
	require.Len(t, l.CostDays, money.CostDays)
	require.Equal(t, from.AddDate(0, 0, 100).Format(time.DateOnly), l.CostDays[0].Date)
	require.Len(t, l.Cost.Providers, 20, "of those without nodes some are kept")
	packed, err := fleet.Encode(l.CostDays)
	require.NoError(t, err)
	require.Less(t, len(packed), 200<<10)
}

// Costs in another currency are not added to the sum. A node that was booked in that currency has no price afterwards.
func TestCostsInAnotherCurrencyAreNotAdded(t *testing.T) {
	at := moment(t, "2026-11-10T00:00:00Z")
	l := costly(t, at, 2)
	l.Step(fleet.GroupInput{}, at.Add(30*time.Hour))
	require.Len(t, l.CostDays, 1)
	s := storySpec()
	s.Currency = "EUR"
	require.NoError(t, l.Operate(fleet.Configure, fleet.Request{Spec: s}, at.Add(30*time.Hour)))
	l.Step(fleet.GroupInput{}, at.Add(31*time.Hour))
	require.Empty(t, l.CostDays)
	require.Equal(t, money.Cost{Currency: "EUR", Since: at.Add(31 * time.Hour), At: at.Add(31 * time.Hour),
		Providers: map[string]money.ProviderCost{"milan": {Nodes: 1, Unpriced: 1}}}, l.Cost)
}

// costly returns a group with one node that costs this amount per hour from this time on.
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

// The sums of a group stay after the end of a run and after a reverted history.
func TestCostsSurviveARevertedHistory(t *testing.T) {
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
	require.Equal(t, money.Of(14), l.Cost.Providers["milan"].Total)

	behind := fleet.Request{Seen: fleet.Position{Epoch: l.Epoch, Revision: 1000}, Spec: storySpec()}
	_ = again.Operate(fleet.Configure, behind, at.Add(8*time.Hour))
	require.True(t, again.Recovering)
	require.Equal(t, l.CostDays, again.CostDays)
	require.Equal(t, l.Cost.Since, again.Cost.Since)
}

// A recovered instance costs the price in its booking. When the booking has no price, the price is unknown, and not
// zero.
func TestRecoveredInstanceCostsItsBookedPrice(t *testing.T) {
	s := storySpec()
	at := moment(t, "2026-11-10T00:00:00Z")
	found := func(seq int, b fleet.Booking) fleet.Found {
		return fleet.Found{Booking: &b, Slice: true, Virtual: true, Marked: true, Node: true, Stamped: true, Ready: true,
			Attempt: fleet.Attempt{Group: "a", Instance: fleet.InstanceName("a", "t0", seq), Number: 1,
				Provider: fleet.Provider{ID: "milan"}}}
	}
	l := fleet.NewLedger("a", at)
	l.Step(fleet.GroupInput{Result: &fleet.Result{ID: 1, Outcome: fleet.OutcomeDone, Found: fleet.Founds{
		found(1, fleet.Booking{Spec: s.InstanceSpec, BookedAt: at, Hourly: 0.25}),
		found(2, fleet.Booking{Spec: s.InstanceSpec, BookedAt: at})}}}, at.Add(time.Hour))
	require.NoError(t, l.Operate(fleet.Configure, fleet.Request{Spec: s}, at.Add(time.Hour)))
	l.Step(fleet.GroupInput{}, at.Add(time.Hour))
	require.Equal(t, money.ProviderCost{Rate: money.Of(0.25), Nodes: 2, Unpriced: 1}, l.Cost.Providers["milan"])
	require.Equal(t, l.Cost.Providers, l.Snapshot(at.Add(time.Hour)).Cost.Providers)
}
