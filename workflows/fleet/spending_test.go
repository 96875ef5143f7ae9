package fleet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

func amount(a float64) *float64 { return &a }

// What is left: a rate below the hourly limit, and nothing from the moment on when the month has come to its own; the
// next month begins with everything.
func TestWhatMayBeSpent(t *testing.T) {
	cost := costing(moment(t, "2026-11-30T20:00:00Z"), 2)
	cost.Currency = "USD"
	for name, c := range map[string]struct {
		spending *fleet.Spending
		at       string
		more     float64
		left     fleet.Money
		why      string
	}{
		"without limits": {nil, "2026-11-30T20:00:00Z", 1e6, fleet.Unbounded, ""},
		"only soft ones": {&fleet.Spending{Hourly: fleet.SpendingLimit{Soft: amount(1)}},
			"2026-11-30T20:00:00Z", 1e6, fleet.Unbounded, ""},
		"below the hour": {hard(3, 0), "2026-11-30T20:00:00Z", 1, fleet.MoneyOf(1), ""},
		"over the hour": {hard(3, 0), "2026-11-30T20:00:00Z", 1.5, fleet.MoneyOf(1),
			"spending.hourly.hard is 3 USD, what runs costs 2 an hour, and 1.5 more is asked for"},
		"at the hour": {hard(2, 0), "2026-11-30T20:00:00Z", 0, 0,
			"spending.hourly.hard is 2 USD, what runs costs 2 an hour"},
		"beyond the hour": {hard(1, 0), "2026-11-30T20:00:00Z", 0, 0,
			"spending.hourly.hard is 1 USD, what runs costs 2 an hour"},
		"below the month": {hard(0, 4), "2026-11-30T21:59:59Z", 1e6, fleet.Unbounded, ""},
		"at the month": {hard(0, 4), "2026-11-30T22:00:00Z", 0, 0,
			"spending.monthly.hard is 4 USD, and this month came to 4; it may grow from 2026-12-01 on"},
		"in the month after": {hard(0, 4), "2026-12-01T00:00:00Z", 0, fleet.Unbounded, ""},
		"at the month after": {hard(9, 4), "2026-12-01T02:00:00Z", 0, 0,
			"spending.monthly.hard is 4 USD, and this month came to 4; it may grow from 2027-01-01 on"},
		"both, and room in it": {hard(9, 4), "2026-12-01T01:59:00Z", 7, fleet.MoneyOf(7), ""},
	} {
		t.Run(name, func(t *testing.T) {
			at := moment(t, c.at)
			require.Equal(t, c.left, c.spending.Left(cost, at))
			require.Equal(t, c.why, c.spending.Refuses(cost, fleet.MoneyOf(c.more), at))
		})
	}
}

func hard(hour, month float64) *fleet.Spending {
	s := &fleet.Spending{}
	if hour > 0 {
		s.Hourly.Hard = &hour
	}
	if month > 0 {
		s.Monthly.Hard = &month
	}
	return s
}

func TestReachedLimits(t *testing.T) {
	at := moment(t, "2026-11-30T20:00:00Z")
	s := hard(3, 4)
	s.Hourly.Soft, s.Monthly.Soft = amount(2), amount(1)
	require.Empty(t, (*fleet.Spending)(nil).Reaches(costing(at, 2), at))
	require.Equal(t, []fleet.Reach{
		{Period: "hour", Level: "soft", Limit: 2, Spent: 2, Reached: true},
		{Period: "hour", Level: "hard", Limit: 3, Spent: 2},
		{Period: "month", Level: "soft", Limit: 1, Spent: 3, Reached: true},
		{Period: "month", Level: "hard", Limit: 4, Spent: 3},
	}, s.Reaches(costing(at, 2), at.Add(90*time.Minute)))
}

func perNode(s *fleet.GroupSpec) *float64 {
	if s.Spending == nil {
		return nil
	}
	return s.Spending.PerNode
}

// A booking lets a node cost no more than it may, nor than its group's may.
func TestBookedWithinSpending(t *testing.T) {
	at := moment(t, "2026-11-10T00:00:00Z")
	for name, c := range map[string]struct{ perNode, cap, want *float64 }{
		"nothing":             {},
		"the group's":         {perNode: amount(2), want: amount(2)},
		"the booking's":       {cap: amount(1), want: amount(1)},
		"the smaller booking": {perNode: amount(2), cap: amount(1), want: amount(1)},
		"the smaller group's": {perNode: amount(2), cap: amount(3), want: amount(2)},
	} {
		t.Run(name, func(t *testing.T) {
			l := &fleet.Ledger{Group: "a", Epoch: "t0", Spec: storySpec()}
			l.Restore()
			if c.perNode != nil {
				l.Spec.Spending = &fleet.Spending{PerNode: c.perNode, Monthly: fleet.SpendingLimit{Hard: amount(100)}}
			}
			r := fleet.Request{Delta: 1, Operation: fleet.Operation{ID: "1", GiveUpAt: at.Add(time.Hour)}}
			if c.cap != nil {
				r.PriceCap = *c.cap
			}
			require.NoError(t, l.Operate(fleet.Grow, r, at))
			l.Step(fleet.GroupInput{}, at)
			in := l.DriverInput(l.Commands.Open[0])
			if c.want == nil {
				require.Nil(t, in.Spec.Spending)
				return
			}
			require.Equal(t, *c.want, *in.Spec.Spending.PerNode)
			require.Equal(t, c.perNode != nil, in.Spec.Spending.Monthly.Hard != nil, "the rest is as it was")
			require.Equal(t, c.perNode, perNode(l.Spec), "and so is the group's own")
		})
	}
}
