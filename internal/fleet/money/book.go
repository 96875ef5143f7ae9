package money

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// Book contains bills, at most one for each life of a group, oldest first. Bound limits its size.
type Book []Bill

// Add adds a bill that is not empty, or replaces the bill of the same life if Bill.Replaces allows it. It reports
// whether the book has changed.
func (b *Book) Add(bill Bill) bool {
	if bill.Group == "" || bill.Cost.Since.IsZero() || bill.Cost.IsEmpty() && len(bill.Days) == 0 {
		return false
	}
	for n, have := range *b {
		if have.Is(bill.Group, bill.Cost.Since) {
			if !bill.Replaces(have) {
				return false
			}
			(*b)[n] = bill
			b.sort()
			return true
		}
	}
	*b = append(*b, bill)
	b.sort()
	return true
}

func (b *Book) sort() {
	slices.SortFunc(*b, func(a, o Bill) int {
		return cmp.Or(a.Cost.At.Compare(o.Cost.At), cmp.Compare(a.Group, o.Group), a.Cost.Since.Compare(o.Cost.Since))
	})
}

// Find returns the bill of one life of a group. It returns false when the book does not contain the bill.
func (b Book) Find(group string, since time.Time) (Bill, bool) {
	for _, bill := range b {
		if bill.Is(group, since) {
			return bill, true
		}
	}
	return Bill{}, false
}

// Latest returns the bill of a group's last life. It returns false when the book contains no bill of the group.
func (b Book) Latest(group string) (last Bill, known bool) {
	for _, bill := range b {
		if bill.Group == group && (!known || bill.Cost.Since.After(last.Cost.Since)) {
			last, known = bill, true
		}
	}
	return last, known
}

// Bound removes the days before the last CostDays days. While the book's JSON has more bytes than the parameter most,
// it then removes the oldest days. If this does not suffice, it replaces the costs of a bill's providers by their sum.
// If this does not suffice either, it removes the oldest bills. A removed bill no longer contributes to the month's
// sum.
func (b *Book) Bound(most int, now time.Time) {
	first := now.UTC().Add(-CostDays * oneDay).Truncate(oneDay)
	*b = slices.DeleteFunc(*b, func(bill Bill) bool { return bill.Cost.At.Before(first) })
	b.forget(first)
	for len(*b) > 0 && b.size() > most {
		if oldest, newest, known := b.span(); known {
			b.forget(oldest.Add(max(newest.Sub(oldest)/8, 0) + oneDay).Truncate(oneDay))
			continue
		}
		if b.fold() {
			continue
		}
		*b = (*b)[max(len(*b)/8, 1):]
	}
}

func (b Book) size() int {
	text, err := json.Marshal(b)
	if err != nil {
		return 0
	}
	return len(text)
}

// fold replaces the costs of each bill's providers by their sum. It reports whether any bill had more than one
// provider.
func (b Book) fold() (folded bool) {
	for n := range b {
		if len(b[n].Cost.Providers) < 2 {
			continue
		}
		var sum ProviderCost
		for _, id := range slices.Sorted(maps.Keys(b[n].Cost.Providers)) {
			p := b[n].Cost.Providers[id]
			sum.Today, sum.Total = sum.Today.Plus(p.Today), sum.Total.Plus(p.Total)
		}
		b[n].Cost.Providers, folded = map[string]ProviderCost{OtherProviders: sum}, true
	}
	return folded
}

// span returns the first and the last day that the bills list individually.
func (b Book) span() (oldest, newest time.Time, known bool) {
	for _, bill := range b {
		for _, day := range bill.Days {
			at, err := time.Parse(time.DateOnly, day.Date)
			if err != nil {
				continue
			}
			if !known || at.Before(oldest) {
				oldest = at
			}
			if !known || at.After(newest) {
				newest = at
			}
			known = true
		}
	}
	return oldest, newest, known
}

// forget removes the days before a date.
func (b Book) forget(before time.Time) {
	date := before.Format(time.DateOnly)
	for n := range b {
		kept := slices.DeleteFunc(slices.Clone(b[n].Days), func(d CostDay) bool { return d.Date < date })
		if len(kept) < len(b[n].Days) {
			b[n].Days, b[n].From = kept, date
		}
	}
}

// mostSpent bounds the number of rows for the check of spending limits, because one memo contains all rows.
const mostSpent = 300

// Spent returns the rows for the check of spending limits: the bills with costs in the month of the given time. When
// there are too many rows, it adds up the rows of each account, and then omits the smallest amounts.
func (b Book) Spent(now time.Time) (rows []Spent) {
	month := now.UTC().Format(monthOnly)
	for _, bill := range b {
		if s := bill.Spent(); s.Month == month && s.Amount > 0 {
			rows = append(rows, s)
		}
	}
	if len(rows) <= mostSpent {
		return rows
	}
	type key struct{ account, currency string }
	sums := map[key]Money{}
	for _, s := range rows {
		k := key{s.Account, s.Currency}
		sums[k] = sums[k].Plus(s.Amount)
	}
	rows = nil
	for _, k := range slices.SortedFunc(maps.Keys(sums), func(a, o key) int {
		return cmp.Or(cmp.Compare(sums[o], sums[a]), cmp.Compare(a.account, o.account), cmp.Compare(a.currency, o.currency))
	}) {
		rows = append(rows, Spent{Account: k.account, Currency: k.currency, Month: month, Amount: sums[k]})
	}
	return rows[:min(len(rows), mostSpent)]
}
