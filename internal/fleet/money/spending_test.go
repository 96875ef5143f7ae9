package money_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
)

// Below the hourly limit, the remaining budget is the difference to the limit. It is zero as soon as the month
// reaches its own limit. The next month begins with the full budget.
func TestRemainingBudget(t *testing.T) {
	cost := costing(moment(t, "2026-11-30T20:00:00Z"), 2)
	cost.Currency = "USD"
	for name, c := range map[string]struct {
		spending *money.Spending
		at       string
		more     float64
		left     money.Money
		why      string
	}{
		"without limits": {nil, "2026-11-30T20:00:00Z", 1e6, money.Unbounded, ""},
		"only soft ones": {&money.Spending{Hourly: money.SpendingLimit{Soft: ptr.To(1.0)}},
			"2026-11-30T20:00:00Z", 1e6, money.Unbounded, ""},
		"below the hour": {hard(3, 0), "2026-11-30T20:00:00Z", 1, money.Of(1), ""},
		"over the hour": {hard(3, 0), "2026-11-30T20:00:00Z", 1.5, money.Of(1),
			"spending.hourly.hard is 3 USD, the running nodes cost 2 an hour, and 1.5 more is requested"},
		"at the hour": {hard(2, 0), "2026-11-30T20:00:00Z", 0, 0,
			"spending.hourly.hard is 2 USD, the running nodes cost 2 an hour"},
		"beyond the hour": {hard(1, 0), "2026-11-30T20:00:00Z", 0, 0,
			"spending.hourly.hard is 1 USD, the running nodes cost 2 an hour"},
		"below the month": {hard(0, 4), "2026-11-30T21:59:59Z", 1e6, money.Unbounded, ""},
		"at the month": {hard(0, 4), "2026-11-30T22:00:00Z", 0, 0,
			"spending.monthly.hard is 4 USD, and this month came to 4; it may grow from 2026-12-01 on"},
		"in the month after": {hard(0, 4), "2026-12-01T00:00:00Z", 0, money.Unbounded, ""},
		"at the month after": {hard(9, 4), "2026-12-01T02:00:00Z", 0, 0,
			"spending.monthly.hard is 4 USD, and this month came to 4; it may grow from 2027-01-01 on"},
		"both, and room in it": {hard(9, 4), "2026-12-01T01:59:00Z", 7, money.Of(7), ""},
	} {
		t.Run(name, func(t *testing.T) {
			at := moment(t, c.at)
			require.Equal(t, c.left, c.spending.Left(cost.Balance(at)))
			require.Equal(t, c.why, c.spending.Refuses(cost.Balance(at), money.Of(c.more)))
		})
	}
}

func hard(hour, month float64) *money.Spending {
	s := &money.Spending{}
	if hour > 0 {
		s.Hourly.Hard = &hour
	}
	if month > 0 {
		s.Monthly.Hard = &month
	}
	return s
}

func TestLimitsReachedBySpending(t *testing.T) {
	at := moment(t, "2026-11-30T20:00:00Z")
	s := hard(3, 4)
	s.Hourly.Soft, s.Monthly.Soft = ptr.To(2.0), ptr.To(1.0)
	require.Empty(t, (*money.Spending)(nil).Reaches(costing(at, 2).Balance(at)))
	require.Equal(t, []money.Reach{
		{Period: "hour", Level: "soft", Limit: 2, Spent: 2, Reached: true},
		{Period: "hour", Level: "hard", Limit: 3, Spent: 2},
		{Period: "month", Level: "soft", Limit: 1, Spent: 3, Reached: true},
		{Period: "month", Level: "hard", Limit: 4, Spent: 3},
	}, s.Reaches(costing(at, 2).Balance(at.Add(90*time.Minute))))
}

// Reserved costs count like running costs, and the refusal names them. A remaining budget is never negative.
func TestReservedCostsCountAsSpent(t *testing.T) {
	cost := costing(moment(t, "2026-11-30T20:00:00Z"), 2)
	cost.Currency, cost.Reserved = "USD", money.Of(1.5)
	require.Equal(t, money.Of(0.5), hard(4, 0).Left(cost.Balance(cost.At)))
	require.Zero(t, hard(3, 0).Left(cost.Balance(cost.At)))
	require.Equal(t, "spending.hourly.hard is 3 USD, the running nodes cost 2 an hour, nodes that are being created "+
		"cost up to 1.5",
		hard(3, 0).Refuses(cost.Balance(cost.At), 0))
	cost.Reserved = 1
	require.Contains(t, hard(2, 0).Refuses(cost.Balance(cost.At), 1),
		"nodes that are being created cost up to 1e-06, and 1e-06 more is requested")
	require.Empty(t, hard(2.000002, 0).Refuses(cost.Balance(cost.At), 1), "to the last millionth")
}
