package money_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// integral is the model. It adds the hourly rate for each second, and counts in 3,600ths of a millionth.
type integral struct {
	since    time.Time
	running  map[string]money.ProviderCost
	provider map[string]int64
	month    int64
}

// advance splits the time at the ends of months.
func (m *integral) advance(until time.Time) {
	for until = until.Truncate(time.Second); m.since.Before(until); {
		next := time.Date(m.since.Year(), m.since.Month()+1, 1, 0, 0, 0, 0, time.UTC)
		end := until
		if next.Before(end) {
			end = next
		}
		for id, p := range m.running {
			cost := int64(p.Rate) * int64(end.Sub(m.since)/time.Second)
			m.provider[id] += cost
			m.month += cost
		}
		if end.Equal(next) {
			m.month = 0
		}
		m.since = end
	}
}

// rates returns the rates of up to 12 providers. A past day lists each of these providers separately.
func rates(r *rand.Rand) map[string]money.ProviderCost {
	running := map[string]money.ProviderCost{}
	for n := range r.IntN(30) {
		id := fmt.Sprintf("p%02d", r.IntN(12))
		running[id] = running[id].With(money.Of(r.Float64() * float64(n%4)))
	}
	return running
}

// The sum of all days, the sum of all providers and the sum of the month each equal the integral of the rates. This
// holds across ends of years, leap days, clocks that go back, and a history that is encoded and decoded.
func TestCostsAreTheIntegralOfTheRates(t *testing.T) {
	steps := []time.Duration{time.Second, time.Hour, 26 * time.Hour, 800 * time.Hour}
	for r := range testkit.Cases(t) {
		now := time.Date(2023+r.IntN(6), time.Month(1+r.IntN(12)), 1+r.IntN(28), r.IntN(24), r.IntN(60), r.IntN(60),
			r.IntN(1e9), time.UTC)
		var c money.Cost
		c.Advance(now)
		model := integral{since: now.Truncate(time.Second), provider: map[string]int64{}}
		days, sum := map[string]bool{}, money.Money(0)
		for range 25 {
			step := time.Duration(r.Int64N(int64(steps[r.IntN(len(steps))])))
			if r.IntN(10) == 0 {
				step = -step
			}
			now = now.Add(step)
			model.advance(now)
			for _, d := range c.Advance(now) {
				require.False(t, days[d.Date], "%s comes twice", d.Date)
				days[d.Date] = true
				for _, m := range d.Providers {
					sum += m
				}
			}
			if r.IntN(3) == 0 { // the history is encoded and decoded
				raw, err := json.Marshal(c)
				require.NoError(t, err)
				c = money.Cost{}
				require.NoError(t, json.Unmarshal(raw, &c))
			}
			model.running = rates(r)
			c.Run(model.running)
		}
		whole := int64(0)
		for id, p := range c.Providers {
			sum += p.Today
			require.Equal(t, model.provider[id]/3600, int64(p.Total), id)
			require.Equal(t, model.provider[id]%3600, p.Remainder, id)
		}
		for _, parts := range model.provider {
			whole += parts / 3600
		}
		require.Equal(t, whole, int64(sum), "all days and today")
		require.InDelta(t, float64(model.month)/3600, float64(c.ThisMonth()), 13, "a millionth for each provider")
	}
}
