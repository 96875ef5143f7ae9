package money

import (
	"fmt"
	"math"
	"time"
)

// Spending bounds the cost of all nodes of an account, in the group's currency. No limit removes a node. A node whose
// offer has no price counts as zero.
type Spending struct {
	// Account names the account to which the group's costs belong; empty means that the group has its own account,
	// named after the group's id. Groups may share an account. The limits of each group are then compared with the
	// sum of all groups of the account.
	Account string `json:"account,omitempty" validate:"omitempty,groupid"`
	// Hourly bounds the hourly cost of all nodes together, including nodes that are being created.
	Hourly SpendingLimit `json:"hourly,omitzero"`
	// Monthly bounds the spending in a calendar month, in UTC. When the limit is reached, the group does not grow
	// until the month ends. Running nodes stay and continue to cost money.
	Monthly SpendingLimit `json:"monthly,omitzero"`
}

// SpendingLimit has two levels. A nil level means no limit.
type SpendingLimit struct {
	// Soft only causes warnings: in the log, in a metric and in status.
	Soft *float64 `json:"soft,omitempty" validate:"omitempty,gt=0,lte=100000000"`
	// Hard makes the server refuse a scale-out that would exceed it. CA receives no larger max size than the limit
	// allows.
	Hard *float64 `json:"hard,omitempty" validate:"omitempty,gt=0,lte=100000000"`
}

// Unbounded is the amount that may be spent without a limit.
const Unbounded Money = math.MaxInt64

// Left returns the total hourly cost that additional nodes may have. It returns 0 when the group must not grow, and
// Unbounded without a hard limit.
func (s *Spending) Left(b Balance) Money {
	switch {
	case s == nil:
		return Unbounded
	case s.Monthly.Hard != nil && b.Month >= limit(s.Monthly.Hard):
		return 0
	case s.Hourly.Hard == nil:
		return Unbounded
	}
	return max(limit(s.Hourly.Hard)-b.Rate.Plus(b.Reserved), 0)
}

// Refuses returns the reason for rejecting a scale-out that would raise the hourly cost by the amount in the parameter
// more. It returns "" when the scale-out may start.
func (s *Spending) Refuses(b Balance, more Money) string {
	left := s.Left(b)
	if left > 0 && more <= left {
		return ""
	}
	if s.Monthly.Hard != nil && b.Month >= limit(s.Monthly.Hard) {
		next := b.At.AddDate(0, 1, 1-b.At.Day())
		return fmt.Sprintf("spending.monthly.hard is %.6g %s, and this month came to %.6g%s; it may grow from %s on",
			*s.Monthly.Hard, b.Currency, b.Month.Float(), s.of(), next.Format(time.DateOnly))
	}
	text := fmt.Sprintf("spending.hourly.hard is %.6g %s, the running nodes cost %.6g an hour%s", *s.Hourly.Hard,
		b.Currency, b.Rate.Float(), s.of())
	if b.Reserved > 0 {
		text += fmt.Sprintf(", nodes that are being created cost up to %.6g", b.Reserved.Float())
	}
	if more > 0 {
		text += fmt.Sprintf(", and %.6g more is requested", more.Float())
	}
	return text
}

// of returns words that name the account, or "" if the group has its own account.
func (s *Spending) of() string {
	if s.Account == "" {
		return ""
	}
	return " (account " + s.Account + ")"
}

// These are the periods and levels of limits, for metrics.
const (
	PeriodHour  = "hour"
	PeriodMonth = "month"
	LevelSoft   = "soft"
	LevelHard   = "hard"
)

// Reach describes one limit, and whether it has been reached.
type Reach struct {
	Period  string  `json:"period"`
	Level   string  `json:"level"`
	Limit   float64 `json:"limit"`
	Spent   float64 `json:"spent"`
	Reached bool    `json:"reached"`
}

// Reaches returns the state of each limit, in a fixed order.
func (s *Spending) Reaches(b Balance) (all []Reach) {
	if s == nil {
		return nil
	}
	for _, l := range []struct {
		period, level string
		limit         *float64
		spent         Money
	}{
		{PeriodHour, LevelSoft, s.Hourly.Soft, b.Rate}, {PeriodHour, LevelHard, s.Hourly.Hard, b.Rate},
		{PeriodMonth, LevelSoft, s.Monthly.Soft, b.Month}, {PeriodMonth, LevelHard, s.Monthly.Hard, b.Month},
	} {
		if l.limit != nil {
			all = append(all, Reach{Period: l.period, Level: l.level, Limit: *l.limit, Spent: l.spent.Float(),
				Reached: l.spent >= limit(l.limit)})
		}
	}
	return all
}

func limit(amount *float64) Money { return Of(*amount) }
