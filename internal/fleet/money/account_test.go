package money_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// bill returns the bill of a group that had a node at this price between the two times.
func bill(t *testing.T, group, account, from, until string, hourly float64) money.Bill {
	t.Helper()
	c := costing(moment(t, from), hourly)
	c.Currency = "EUR"
	b := money.Bill{Group: group, Account: account}
	b.Cost, b.Days = c.Until(moment(t, until))
	return b
}

// The cost of an account is the cost of its running groups plus the cost of its groups that have ended in this month.
func TestAccountSumsRunningAndEndedGroups(t *testing.T) {
	now := moment(t, "2026-11-10T12:00:00Z")
	live := bill(t, "new", "team", "2026-11-10T10:00:00Z", "2026-11-10T11:00:00Z", 3)
	live.Cost.Reserved = money.Of(0.5)
	running := []money.Member{{Group: "new", Cost: live.Cost}}
	old := bill(t, "old", "team", "2026-11-09T22:00:00Z", "2026-11-10T02:00:00Z", 1).Settled()
	dollars := old
	dollars.Group, dollars.Cost.Currency = "dollars", "USD"
	for name, c := range map[string]struct {
		ended []money.Bill
		month float64
	}{
		"nothing has ended":      {nil, 6},
		"a group of the account": {[]money.Bill{old}, 10},
		"of another account":     {[]money.Bill{bill(t, "x", "x", "2026-11-09T22:00:00Z", "2026-11-10T02:00:00Z", 1)}, 6},
		"in another currency":    {[]money.Bill{dollars}, 6},
		"in the month before":    {[]money.Bill{bill(t, "x", "team", "2026-10-09T22:00:00Z", "2026-10-10T02:00:00Z", 1)}, 6},
		"a life that still runs": {[]money.Bill{live.Settled()}, 6},
		"an earlier life of it": {[]money.Bill{bill(t, "new", "team", "2026-11-01T00:00:00Z", "2026-11-01T01:00:00Z", 7)},
			13},
		"one that nothing bounds": {[]money.Bill{{Group: "x", Account: "team"}}, 6},
	} {
		t.Run(name, func(t *testing.T) {
			var ended []money.Spent
			for _, b := range c.ended {
				ended = append(ended, b.Spent())
			}
			b := money.Together("team", "EUR", running, ended, now)
			require.Equal(t, money.Balance{Currency: "EUR", At: now, Rate: money.Of(3), Reserved: money.Of(0.5),
				Month: money.Of(c.month)}, b)
		})
	}
	require.Zero(t, old.Cost.Providers["milan"].Rate, "settled: no node costs anything any more")
	later, _ := old.Cost.Until(now)
	require.Equal(t, money.Of(4), later.ThisMonth())
}

// A book has one bill for each life of a group. Of two bills for the same life it keeps the bill with the later end.
// A life lasts from the start of the group's sums until the group is removed.
func TestBookHasOneBillPerLifeOfAGroup(t *testing.T) {
	var b money.Book
	first := bill(t, "a", "a", "2026-11-01T00:00:00Z", "2026-11-01T02:00:00Z", 1)
	longer := bill(t, "a", "a", "2026-11-01T00:00:00Z", "2026-11-01T03:00:00Z", 1)
	again := bill(t, "a", "a", "2026-11-05T00:00:00Z", "2026-11-05T01:00:00Z", 1)
	require.True(t, b.Add(first))
	require.False(t, b.Add(first), "once more")
	require.True(t, b.Add(longer))
	require.False(t, b.Add(first), "late")
	require.True(t, b.Add(again))
	require.False(t, b.Add(money.Bill{Group: "never counted"}))
	empty := bill(t, "cost nothing", "a", "2026-11-01T00:00:00Z", "2026-11-01T02:00:00Z", 0).Settled()
	require.False(t, b.Add(empty))
	require.Equal(t, money.Book{longer, again}, b)
	last, known := b.Latest("a")
	require.True(t, known)
	require.Equal(t, again, last)
	require.Len(t, b.Spent(moment(t, "2026-11-30T00:00:00Z")), 2)
	require.Empty(t, b.Spent(moment(t, "2026-12-01T00:00:00Z")))
}

// A hub that has lost its bills makes new ones from the published sums of the month (Spent). A new bill contains only
// this sum.
func TestMonthlySumsBecomeABill(t *testing.T) {
	b := bill(t, "a", "team", "2026-10-31T00:00:00Z", "2026-11-02T00:00:00Z", 1)
	s := b.Spent()
	require.Equal(t, money.Of(24), s.Amount)
	require.Equal(t, s, s.Bill().Spent())
	folded := money.Spent{Account: "team", Currency: "EUR", Month: "2026-11", Amount: 7}
	require.Equal(t, money.Money(7), folded.Bill().Spent().Amount)
	require.Equal(t, "2026-11", folded.Bill().Spent().Month)
	var book money.Book
	require.True(t, book.Add(folded.Bill()))
}

// A book stays within its size limit. It drops past days before it drops sums of the last month.
func TestBookIsBounded(t *testing.T) {
	now := moment(t, "2026-11-30T00:00:00Z")
	var b money.Book
	for n := range 40 {
		one := bill(t, fmt.Sprintf("g%02d", n), "team", "2025-12-01T00:00:00Z", "2026-11-29T01:00:00Z", 1)
		require.Len(t, one.Days, 363)
		b.Add(one)
	}
	b.Add(bill(t, "forgotten", "team", "2025-01-01T00:00:00Z", "2025-03-01T00:00:00Z", 1))
	month := b.Spent(now)
	const most = 100 << 10
	b.Bound(most, now)
	text, err := json.Marshal(b)
	require.NoError(t, err)
	require.LessOrEqual(t, len(text), most)
	require.Len(t, b, 40, "all but the one that is older than 400 days")
	require.Equal(t, month, b.Spent(now))
	require.Equal(t, b[0].Days[0].Date, max(b[0].Days[0].Date, b[0].From), "it says from when there are days")
	b.Bound(2<<10, now)
	require.NotEmpty(t, b)
	require.Less(t, len(b), 40)
	b.Bound(0, now)
	require.Empty(t, b)
}

// The size of the sums that are compared with limits is bounded, too. At the bound, the rows of an account are merged
// into one row.
func TestMonthlySumsAreBounded(t *testing.T) {
	now := moment(t, "2026-11-30T00:00:00Z")
	var b money.Book
	for n := range 1000 {
		b.Add(bill(t, fmt.Sprintf("g%03d", n), fmt.Sprintf("team%d", n%10), "2026-11-01T00:00:00Z", "2026-11-01T01:00:00Z",
			float64(1+n%10)))
	}
	rows := b.Spent(now)
	require.Len(t, rows, 10)
	require.Equal(t, money.Spent{Account: "team9", Currency: "EUR", Month: "2026-11", Amount: money.Of(1000)}, rows[0])
	for n := range 1000 {
		b[n].Account = b[n].Group
	}
	require.Len(t, b.Spent(now), 300)
	require.Equal(t, money.Of(10), b.Spent(now)[0].Amount, "the largest amounts stay")
}

// When an amount is added for a time and then subtracted again, every sum is unchanged. A day never loses more than it
// had.
func TestCorrectionRestoresEverySum(t *testing.T) {
	for r := range testkit.Cases(t) {
		from := time.Date(2026, time.Month(1+r.IntN(12)), 1+r.IntN(28), r.IntN(24), r.IntN(60), r.IntN(60), 0, time.UTC)
		c := costing(from, float64(r.IntN(5)))
		end := from.Add(time.Duration(r.IntN(90*24*3600)) * time.Second)
		c, days := c.Until(end)
		before, total := c.ThisMonth(), c.Providers["milan"].Total
		since := from.Add(time.Duration(r.Int64N(int64(end.Sub(from))+1) - int64(time.Hour)))
		price := money.Of(r.Float64() * 10)
		provider := []string{"milan", "rome"}[r.IntN(2)]

		more := c.Correct(days, provider, price, since, false)
		from = later(since.Truncate(time.Second), from)
		want := int64(price) * int64(end.Sub(from)/time.Second) / 3600
		var sum money.Money
		for _, p := range c.Providers {
			sum += p.Total
		}
		require.InDelta(t, want, int64(sum-total), 100, "a millionth for each day")
		require.Equal(t, sum, sumOf(more)+todays(c))
		require.GreaterOrEqual(t, c.ThisMonth(), before)

		less := c.Correct(more, provider, price, since, true)
		require.Equal(t, before, c.ThisMonth())
		require.Equal(t, total, c.Providers["milan"].Total)
		require.Equal(t, sumOf(days), sumOf(less))
		all := c.Correct(less, "milan", money.Of(1e6), time.Time{}, true)
		require.Zero(t, sumOf(all)+todays(c)+c.ThisMonth())
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func sumOf(days []money.CostDay) (sum money.Money) {
	for _, d := range days {
		for _, amount := range d.Providers {
			sum += amount
		}
	}
	return sum
}

func todays(c money.Cost) (sum money.Money) {
	for _, p := range c.Providers {
		sum += p.Today
	}
	return sum
}
