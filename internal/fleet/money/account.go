package money

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Balance is the cost of all groups of an account at a given time.
type Balance struct {
	Currency string
	At       time.Time
	// Rate is the hourly cost of the running nodes. Reserved is the highest hourly cost that the instances without a
	// node can have.
	Rate, Reserved Money
	// Month is the sum of the calendar month that contains At.
	Month Money
}

// Balance returns the balance of one group at the given time, if nothing changes until then.
func (c Cost) Balance(now time.Time) Balance {
	c, _ = c.Until(now)
	rate, _ := c.Rate()
	at := c.At
	if c.Since.IsZero() {
		at = now.UTC()
	}
	return Balance{Currency: c.Currency, At: at, Rate: rate, Reserved: c.Reserved, Month: c.ThisMonth()}
}

// Bill contains the daily costs of one life of a group. A life lasts from the start of the group's sums until the
// group is removed. Group and Cost.Since identify the bill, so a bill that is received twice counts once.
type Bill struct {
	Group   string `json:"group"`
	Account string `json:"account"`
	Cost    Cost   `json:"cost"`
	// Days lists the past days, oldest first.
	Days []CostDay `json:"days,omitempty"`
	// From is the first day that is still known; empty when all days since Cost.Since are known.
	From string `json:"from,omitempty"`
	// Epoch, Revision and Booked are the position in the group's history at which the bill was made.
	Epoch    string `json:"epoch,omitempty"`
	Revision int64  `json:"revision,omitempty"`
	Booked   int    `json:"booked,omitempty"`
	// Ended reports that the life of the group has ended.
	Ended bool `json:"ended,omitempty"`
}

// Replaces reports whether the bill replaces another bill of the same life. If both bills have the same epoch, the
// bill with the higher revision wins. Otherwise the bill whose sums end later wins. If an observer made a bill from a
// state that it read earlier, the group's own bill has a later revision.
func (b Bill) Replaces(have Bill) bool {
	if b.Epoch == have.Epoch && b.Revision != have.Revision {
		return b.Revision > have.Revision
	}
	return have.Cost.At.Before(b.Cost.At)
}

// Is reports whether the bill belongs to this life of the group.
func (b Bill) Is(group string, since time.Time) bool {
	return b.Group == group && b.Cost.Since.Equal(since)
}

// IsEmpty reports whether no node has cost anything since the sums began, as far as is known.
func (c Cost) IsEmpty() bool {
	if c.Month > 0 || c.Unpriced > 0 {
		return false
	}
	for _, id := range slices.Sorted(maps.Keys(c.Providers)) {
		p := c.Providers[id]
		if p.Total > 0 || p.Today > 0 || p.Nodes > 0 {
			return false
		}
	}
	return true
}

// Settled returns the bill as it is after the group's end: without running nodes and reserved costs.
func (b Bill) Settled() Bill {
	b.Cost, _ = b.Cost.Until(b.Cost.At) // Until returns a copy
	b.Cost.Run(nil)
	b.Cost.Reserved = 0
	return b
}

// Spent returns the part of the bill that the check of limits needs.
func (b Bill) Spent() Spent {
	return Spent{Group: b.Group, Since: b.Cost.Since, Account: b.Account, Currency: b.Cost.Currency,
		Month: b.Cost.At.Format(monthOnly), Amount: b.Cost.ThisMonth()}
}

// monthOnly is the layout of a month.
const monthOnly = "2006-01"

// Ended is the summary of the bills of ended groups. The hub publishes it.
type Ended struct {
	// Bills is the number of bills that the hub has. Rows contains the month's sums at the time of the last
	// publication.
	Bills int     `json:"bills"`
	Rows  []Spent `json:"rows,omitempty"`
}

// Spent is the cost of an ended group in the last month of its life.
type Spent struct {
	Group    string    `json:"group,omitempty"`
	Since    time.Time `json:"since,omitzero"`
	Account  string    `json:"account"`
	Currency string    `json:"currency,omitempty"`
	Month    string    `json:"month"`
	Amount   Money     `json:"amount"`
}

// Is reports whether the row belongs to this life of the group.
func (s Spent) Is(group string, since time.Time) bool {
	return s.Group == group && s.Since.Equal(since)
}

// SameLife reports whether both rows belong to the same life of a group.
func (s Spent) SameLife(o Spent) bool { return s.Is(o.Group, o.Since) }

// Bill returns a bill that contains only the month's sum, for a hub that has lost its bills.
func (s Spent) Bill() Bill {
	at, err := time.Parse(monthOnly, s.Month)
	if err != nil {
		at = s.Since
	}
	at = at.UTC()
	since := s.Since
	if since.IsZero() {
		since = at
	}
	return Bill{Group: cmp.Or(s.Group, s.Account), Account: s.Account,
		Cost: Cost{Currency: s.Currency, Since: since, At: at, Month: s.Amount}}
}

// Member is a running group of an account.
type Member struct {
	Group string
	Cost  Cost
}

// Together returns the balance of an account: the sum of its running groups, and the costs of its ended groups in this
// month. It ignores the rows in ended whose group still runs, and amounts in another currency.
func Together(account, currency string, running []Member, ended []Spent, now time.Time) Balance {
	sum := Balance{Currency: currency, At: now.UTC()}
	for _, m := range running {
		if b := m.Cost.Balance(now); b.Currency == currency {
			sum.Rate, sum.Reserved = sum.Rate.Plus(b.Rate), sum.Reserved.Plus(b.Reserved)
			sum.Month = sum.Month.Plus(b.Month)
			if b.At.After(sum.At) {
				sum.At = b.At
			}
		}
	}
	month := sum.At.Format(monthOnly)
	for _, s := range ended {
		continued := func(m Member) bool { return s.Is(m.Group, m.Cost.Since) }
		if s.Account == account && s.Currency == currency && s.Month == month && !slices.ContainsFunc(running, continued) {
			sum.Month = sum.Month.Plus(s.Amount)
		}
	}
	return sum
}
