package money

import (
	"fmt"
	"math"
	"time"
)

// Spending bounds what all nodes of a group cost, in the group's currency. Nothing that runs is removed because of it.
// A node whose offer has no price counts as free.
type Spending struct {
	// Hourly bounds what all nodes together cost in an hour, those on their way included.
	Hourly SpendingLimit `json:"hourly,omitzero"`
	// Monthly bounds what is spent in a calendar month, in UTC: from then on the group does not grow until the month is
	// over, and what runs goes on costing.
	Monthly SpendingLimit `json:"monthly,omitzero"`
}

// SpendingLimit has two levels; nil means none.
type SpendingLimit struct {
	// Soft only warns: in the log, as a metric and in status.
	Soft *float64 `json:"soft,omitempty" validate:"omitempty,gt=0,lte=100000000"`
	// Hard has a scale-out refused that would exceed it; CA is told no larger max than it allows.
	Hard *float64 `json:"hard,omitempty" validate:"omitempty,gt=0,lte=100000000"`
}

// Unbounded is what may be spent where nothing bounds it.
const Unbounded Money = math.MaxInt64

// Left is what nodes to come may cost in an hour altogether; 0 when the group must not grow, Unbounded without a hard
// limit. It expects the cost of a Snapshot.
func (s *Spending) Left(c Cost, now time.Time) Money {
	if s == nil {
		return Unbounded
	}
	c, _ = c.Until(now)
	if s.Monthly.Hard != nil && c.ThisMonth() >= limit(s.Monthly.Hard) {
		return 0
	}
	if s.Hourly.Hard == nil {
		return Unbounded
	}
	rate, _ := c.Rate()
	return max(limit(s.Hourly.Hard)-rate.Plus(c.Reserved), 0)
}

// Refuses is why a scale-out must not be that costs more an hour; empty when it may. It expects the cost of a Snapshot.
func (s *Spending) Refuses(c Cost, more Money, now time.Time) string {
	left := s.Left(c, now)
	if left > 0 && more <= left {
		return ""
	}
	c, _ = c.Until(now)
	if s.Monthly.Hard != nil && c.ThisMonth() >= limit(s.Monthly.Hard) {
		next := c.At.AddDate(0, 1, 1-c.At.Day())
		return fmt.Sprintf("spending.monthly.hard is %.6g %s, and this month came to %.6g; it may grow from %s on",
			*s.Monthly.Hard, c.Currency, c.ThisMonth().Float(), next.Format(time.DateOnly))
	}
	rate, _ := c.Rate()
	text := fmt.Sprintf("spending.hourly.hard is %.6g %s, what runs costs %.6g an hour", *s.Hourly.Hard, c.Currency,
		rate.Float())
	if c.Reserved > 0 {
		text += fmt.Sprintf(", what is on its way up to %.6g", c.Reserved.Float())
	}
	if more > 0 {
		text += fmt.Sprintf(", and %.6g more is asked for", more.Float())
	}
	return text
}

// Periods and levels of limits, for metrics.
const (
	PeriodHour  = "hour"
	PeriodMonth = "month"
	LevelSoft   = "soft"
	LevelHard   = "hard"
)

// Reach is whether a limit has been reached.
type Reach struct {
	Period  string  `json:"period"`
	Level   string  `json:"level"`
	Limit   float64 `json:"limit"`
	Spent   float64 `json:"spent"`
	Reached bool    `json:"reached"`
}

// Reaches tells of each limit whether it has been reached at a time, in a fixed order.
func (s *Spending) Reaches(c Cost, now time.Time) (all []Reach) {
	if s == nil {
		return nil
	}
	c, _ = c.Until(now)
	rate, _ := c.Rate()
	for _, l := range []struct {
		period, level string
		limit         *float64
		spent         Money
	}{
		{PeriodHour, LevelSoft, s.Hourly.Soft, rate}, {PeriodHour, LevelHard, s.Hourly.Hard, rate},
		{PeriodMonth, LevelSoft, s.Monthly.Soft, c.ThisMonth()}, {PeriodMonth, LevelHard, s.Monthly.Hard, c.ThisMonth()},
	} {
		if l.limit != nil {
			all = append(all, Reach{Period: l.period, Level: l.level, Limit: *l.limit, Spent: l.spent.Float(),
				Reached: l.spent >= limit(l.limit)})
		}
	}
	return all
}

func limit(amount *float64) Money { return Of(*amount) }
