package observer_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/observer"
)

// accounts holds in memory the bills of a hub and the past days of its groups.
type accounts struct {
	*hub
	book   money.Book
	days   map[string][]money.CostDay
	reads  int // reads of days and of bills: each costs a query
	errors error
}

func (a *accounts) Costs(_ context.Context, group string) (fleet.Snapshot, []money.CostDay, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reads++
	return a.groups[group], a.days[group], a.errors
}

func (a *accounts) Ended(context.Context) (money.Ended, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return money.Ended{Bills: len(a.book), Rows: a.book.Spent(time.Now())}, a.errors
}

func (a *accounts) Bills(context.Context) (money.Book, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reads++
	return append(money.Book{}, a.book...), a.errors
}

func (a *accounts) HandOver(_ context.Context, bills []money.Bill) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, b := range bills {
		a.book.Add(b)
	}
	return a.errors
}

// billed returns a group whose node has cost 1 an hour for the last hour.
func billed(name string, revision int64, month float64) fleet.Snapshot {
	now := time.Now().UTC().Truncate(time.Second)
	return fleet.Snapshot{Group: name, Epoch: "t0", Revision: revision, Spec: &fleet.GroupSpec{
		InstanceSpec: fleet.InstanceSpec{ID: name, Currency: "EUR"}, Spending: &money.Spending{Account: "team"}},
		Cost: money.Cost{Currency: "EUR", Since: now.Add(-time.Hour), At: now, Month: money.Of(month),
			Providers: map[string]money.ProviderCost{"milan": {Rate: money.Of(1), Nodes: 1}}}}
}

// saves counts the documents that a Memory receives.
type saves struct {
	observer.File
	n int
}

func (s *saves) Save(ctx context.Context, document []byte) error {
	s.n++
	return s.File.Save(ctx, document)
}

func billing(t *testing.T, play func(t *testing.T, a *accounts, costs *saves, rounds func(n int))) {
	t.Helper()
	path := t.TempDir() + "/costs"
	synctest.Test(t, func(t *testing.T) {
		a := &accounts{hub: newHub(), days: map[string][]money.CostDay{}}
		costs := &saves{File: observer.File(path)}
		rounds := func(n int) {
			o := a.observer()
			o.Costs, o.Accounts, o.Memory = costs, a, observer.File(path+".memory")
			leads(t, o, func(next func() error) {
				for range n {
					time.Sleep(time.Minute)
					require.NoError(t, next())
				}
			})
		}
		play(t, a, costs, rounds)
	})
}

// savedBill returns the bill that a recovering group receives.
func savedBill(t *testing.T, costs *saves, group string) (money.Bill, bool) {
	t.Helper()
	bill, known, err := (&observer.Records{Memory: costs.File, Costs: costs}).Bill(t.Context(), group)
	require.NoError(t, err)
	return bill, known
}

// The observer saves the costs of a running group once a minute, with the past days. While no node costs anything, it
// writes nothing and queries no workflow.
func TestCostsAreSavedOnceAMinute(t *testing.T) {
	billing(t, func(t *testing.T, a *accounts, costs *saves, rounds func(n int)) {
		_, known := savedBill(t, costs, "a")
		require.False(t, known)
		a.groups["a"], a.days["a"] = billed("a", 7, 5), []money.CostDay{{Date: "1999-12-31"}}
		rounds(3)
		bill, known := savedBill(t, costs, "a")
		require.True(t, known)
		require.Equal(t, "team", bill.Account)
		require.Equal(t, int64(7), bill.Revision)
		require.Equal(t, a.days["a"], bill.Days)
		require.Zero(t, bill.Cost.Providers["milan"].Rate, "a saved bill does not grow")
		require.InDelta(t, 5+3./60, bill.Cost.ThisMonth().Float(), 1.5/60)

		idle := a.groups["a"]
		idle.Cost, _ = idle.Cost.Until(time.Now())
		idle.Cost.Run(nil)
		a.groups["a"] = idle
		rounds(2)
		n, reads := costs.n, a.reads
		rounds(5)
		require.Equal(t, n, costs.n)
		require.LessOrEqual(t, a.reads, reads+1, "a new leader reads the hub's bills once")
	})
}

// A group that no longer exists has sent its bill to the hub, or the observer sends the bill instead. When a group of
// the same name exists later, it has its own bill.
func TestBillOfARemovedGroupReachesTheHub(t *testing.T) {
	billing(t, func(t *testing.T, a *accounts, costs *saves, rounds func(n int)) {
		a.groups["a"], a.groups["b"] = billed("a", 7, 5), billed("b", 7, 5)
		rounds(2)
		require.Empty(t, a.book)
		own := money.Bill{Group: "a", Account: "team", Cost: a.groups["a"].Cost}
		own.Cost.At = own.Cost.At.Add(time.Hour)
		own = own.Settled()
		a.book.Add(own)
		delete(a.groups, "a")
		again := billed("b", 1, 1)
		again.Epoch = "t1"
		a.groups["b"] = again
		rounds(2)
		require.Len(t, a.book, 2)
		have, _ := a.book.Latest("a")
		require.Equal(t, own, have, "what a group sends itself is better known")
		_, known := a.book.Latest("b")
		require.True(t, known)
		gone, known := savedBill(t, costs, "a")
		require.True(t, known)
		require.True(t, gone.Ended, "a new group of that name does not continue it")
		bill, _ := savedBill(t, costs, "b")
		require.True(t, bill.Is("b", again.Cost.Since))

		a.book = nil // Temporal has lost its data
		rounds(1)
		require.Len(t, a.book, 2)
	})
}

// A saved bill is not replaced by less complete data. The data is less complete in three cases: the group was
// restored from a backup, the group is being rebuilt, or the observer cannot read the saved bills or the hub.
func TestSavedCostsAreNotReplacedByLess(t *testing.T) {
	billing(t, func(t *testing.T, a *accounts, costs *saves, rounds func(n int)) {
		a.groups["a"] = billed("a", 7, 5)
		rounds(2)
		before, _ := savedBill(t, costs, "a")
		for name, change := range map[string]func(*fleet.Snapshot){
			"of a backup":   func(s *fleet.Snapshot) { s.Revision = 3 },
			"being rebuilt": func(s *fleet.Snapshot) { s.Recovering = true },
			"new":           func(s *fleet.Snapshot) { s.Cost = money.Cost{} },
		} {
			s := billed("a", 7, 90)
			s.Cost.Since = before.Cost.Since
			change(&s)
			a.groups["a"] = s
			rounds(2)
			now, known := savedBill(t, costs, "a")
			require.True(t, known, name)
			require.Equal(t, before, now, name)
		}
		document, err := os.ReadFile(string(costs.File))
		require.NoError(t, err)
		a.errors = fmt.Errorf("no worker: %w", errors.ErrUnsupported)
		delete(a.groups, "a")
		rounds(2)
		after, err := os.ReadFile(string(costs.File))
		require.NoError(t, err)
		require.Equal(t, string(document), string(after))
		a.errors = nil
		rounds(3)
		require.Empty(t, a.book, "it may come back")
		rounds(6)
		require.Len(t, a.book, 1)
	})
}

// An observer that cannot decode the saved bills leaves them unchanged. It saves bills again after the unreadable
// bills were deleted.
func TestUnreadableSavedCostsAreKept(t *testing.T) {
	billing(t, func(t *testing.T, a *accounts, costs *saves, rounds func(n int)) {
		a.groups["a"] = billed("a", 7, 5)
		rounds(2)
		for _, broken := range []string{"{", `{"running": 7}`} {
			require.NoError(t, os.WriteFile(string(costs.File), []byte(broken), 0o600))
			rounds(3)
			after, err := os.ReadFile(string(costs.File))
			require.NoError(t, err)
			require.Equal(t, broken, string(after))
		}
		require.NoError(t, os.Remove(string(costs.File)))
		rounds(2)
		_, known := savedBill(t, costs, "a")
		require.True(t, known)
	})
}

// An observer loses the lead, and another worker leads and saves bills. When the first observer leads again, it does
// not replace these bills.
func TestReturningLeaderKeepsBillsSavedByAnother(t *testing.T) {
	path := t.TempDir() + "/costs"
	synctest.Test(t, func(t *testing.T) {
		a := &accounts{hub: newHub(), days: map[string][]money.CostDay{}}
		costs := &saves{File: observer.File(path)}
		lead := func(o *observer.Observer, n int) {
			o.Costs, o.Accounts, o.Memory = costs, a, observer.File(path+".memory")
			leads(t, o, func(next func() error) {
				for range n {
					time.Sleep(time.Minute)
					require.NoError(t, next())
				}
			})
		}
		first, second := a.observer(), a.observer()
		a.groups["a"], a.groups["b"] = billed("a", 7, 5), billed("b", 7, 5)
		lead(first, 3)
		time.Sleep(5 * time.Hour)
		lead(second, 3)
		before, known := savedBill(t, costs, "a")
		require.True(t, known)
		delete(a.groups, "a") // the history of the group is lost, and the group does not run yet
		lead(first, 2)
		after, known := savedBill(t, costs, "a")
		require.True(t, known)
		require.Equal(t, before, after)
	})
}

// The observer also saves the days that have ended since the last step of a group.
func TestEndedDayIsSaved(t *testing.T) {
	billing(t, func(t *testing.T, a *accounts, costs *saves, rounds func(n int)) {
		a.groups["a"] = billed("a", 7, 0)
		today := time.Now().UTC().Format(time.DateOnly)
		rounds(2)
		time.Sleep(24 * time.Hour)
		rounds(2)
		bill, _ := savedBill(t, costs, "a")
		require.Len(t, bill.Days, 1, "%+v", bill)
		require.Equal(t, today, bill.Days[0].Date)
		reads := a.reads
		rounds(10)
		require.LessOrEqual(t, a.reads-reads, 1, "a new leader reads the hub's bills; a group is queried once a day")
		bill, _ = savedBill(t, costs, "a")
		require.Len(t, bill.Days, 1)
	})
}

// A group has sent its own bill, and within the same minute the observer has saved another bill for it. The group's own
// bill is used.
func TestGroupsOwnBillWins(t *testing.T) {
	billing(t, func(t *testing.T, a *accounts, costs *saves, rounds func(n int)) {
		a.groups["a"] = billed("a", 7, 5)
		rounds(2)
		own := money.Bill{Group: "a", Account: "team", Revision: 8, Epoch: "t0"}
		own.Cost, _ = a.groups["a"].Cost.Until(time.Now().Add(-10 * time.Second)) // the node was removed before
		own = own.Settled()
		// The round has read the group before this point, and saves the group's bill afterwards.
		a.book.Add(own)
		delete(a.groups, "a")
		rounds(8)
		have, _ := a.book.Latest("a")
		require.Equal(t, own, have)
	})
}

// The saved bills of many idle groups fit into one document, so the observer queries no idle group.
func TestIdleGroupsAreNotQueried(t *testing.T) {
	billing(t, func(t *testing.T, a *accounts, costs *saves, rounds func(n int)) {
		for n := range 230 {
			g := billed(fmt.Sprintf("derived-group-%03d", n), 7, 1)
			g.Cost.Providers = map[string]money.ProviderCost{}
			for p := range 20 {
				id := fmt.Sprintf("9b0b6c0a-6f3a-4a7c-8d2e-%012d", p)
				g.Cost.Providers[id] = money.ProviderCost{Total: money.Of(12.34), Remainder: 1234}
			}
			a.groups[g.Group] = g
		}
		rounds(2)
		reads := a.reads
		rounds(5)
		require.LessOrEqual(t, a.reads-reads, 1)
	})
}

// A hub whose history is lost receives its bills again, even when no bill has costs in this month.
func TestHubWithoutHistoryReceivesItsBillsAgain(t *testing.T) {
	path := t.TempDir() + "/costs"
	synctest.Test(t, func(t *testing.T) {
		a := &accounts{hub: newHub(), days: map[string][]money.CostDay{}}
		costs := &saves{File: observer.File(path)}
		bill := money.Bill{Group: "x", Account: "team", Cost: billed("x", 1, 5).Cost}.Settled()
		a.book.Add(bill)
		time.Sleep(40 * 24 * time.Hour)
		o := a.observer()
		o.Costs, o.Accounts, o.Memory = costs, a, observer.File(path+".memory")
		leads(t, o, func(next func() error) {
			for n := range 30 {
				time.Sleep(time.Minute)
				require.NoError(t, next())
				if n == 3 {
					a.mu.Lock()
					a.book = nil // Temporal has lost its data
					a.mu.Unlock()
				}
			}
		})
		require.Len(t, a.book, 1)
	})
}

// The costs are saved once a minute, even when a round takes less time than the round before.
func TestCostsAreSavedEachMinuteWithShorterRounds(t *testing.T) {
	billing(t, func(t *testing.T, a *accounts, costs *saves, rounds func(n int)) {
		a.groups["a"] = billed("a", 7, 0)
		o := a.observer()
		o.Costs, o.Accounts, o.Memory = costs, a, costs.File+".memory"
		leads(t, o, func(func() error) {
			for n := range 20 {
				a.mu.Lock()
				a.slow = time.Duration(3-3*(n%2)) * time.Second
				a.mu.Unlock()
				time.Sleep(time.Minute)
			}
		})
		require.GreaterOrEqual(t, costs.n, 18)
	})
}
