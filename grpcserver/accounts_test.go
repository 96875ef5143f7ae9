package grpcserver

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"
	"k8s.io/utils/ptr"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// team returns the spending limits of the account "team".
func team(hour, month float64) *money.Spending {
	s := &money.Spending{Account: "team"}
	if hour > 0 {
		s.Hourly.Hard = ptr.To(hour)
	}
	if month > 0 {
		s.Monthly.Hard = ptr.To(month)
	}
	return s
}

// Groups of one account share the account's limits. The costs of one group's nodes, including nodes in creation,
// reduce the money that is left for the other group.
func TestGroupsShareAnAccount(t *testing.T) {
	f, m := newFake(), &fakeMarket{}
	m.nodes("milan", 20, 1)
	c := onMarket(t, f, m, spends("cpu", team(4, 0)), spends("gpu", team(4, 0)), spends("alone", hourly(4)))
	require.Equal(t, 2, c.max("cpu"), "half of what is left: CA may grow both in one loop")
	require.Equal(t, 4, c.max("alone"))
	require.NoError(t, c.increase("cpu", 1))
	require.NoError(t, c.increase("gpu", 2), "without a Refresh between")
	f.makes("cpu", "milan", 1, 1)
	require.NoError(t, c.refresh())
	require.Equal(t, 2, c.max("cpu"))
	err := c.increase("cpu", 2)
	requireCode(t, codes.ResourceExhausted, err)
	require.Equal(t, "increase node group cpu: spending.hourly.hard is 4 USD, "+
		"the running nodes cost 1 an hour (account team), "+
		"nodes that are being created cost up to 2, and 2 more is requested", status.Convert(err).Message())
	require.NoError(t, c.increase("cpu", 1))
	requireCode(t, codes.ResourceExhausted, c.increase("gpu", 1))
	require.NoError(t, c.increase("alone", 4))
}

// Concurrent calls for several groups of one account do not exceed the account's limit.
func TestConcurrentGrowthStaysWithinTheAccount(t *testing.T) {
	f, m := newFake(), &fakeMarket{}
	m.nodes("milan", 200, 1)
	specs := make([]fleet.GroupSpec, 10)
	for n := range specs {
		specs[n] = spends(string(rune('a'+n)), team(12, 0))
	}
	c := onMarket(t, f, m, specs...)
	var booked atomic.Int32
	var all sync.WaitGroup
	for n := range specs {
		for range 3 {
			all.Go(func() {
				if c.increase(specs[n].ID, 1) == nil {
					booked.Add(1)
				}
			})
		}
	}
	all.Wait()
	require.EqualValues(t, 12, booked.Load())
}

// While the outcome of a group's last operation is unknown, the group may have grown. No other group of its account
// grows during this time.
func TestUnknownGrowthStopsTheAccount(t *testing.T) {
	f := newFake()
	s := loaded(t, f, spends("cpu", team(9, 0)), spends("gpu", team(9, 0)), spends("alone", hourly(9)))
	c := newClient(t, s)
	s.roster.Load().byID["gpu"].markUnknown(time.Now().Add(time.Minute))
	err := c.increase("cpu", 1)
	requireCode(t, codes.Unavailable, err)
	require.Contains(t, status.Convert(err).Message(), "node group gpu of account team")
	require.NoError(t, c.increase("alone", 1))
}

// The costs of an account's ended groups count in this month, each group once. When this server has just closed a
// group, its costs count before the hub shows them. All costs also count while the hub cannot be read.
func TestEndedGroupsCountInTheirAccount(t *testing.T) {
	f := newFake()
	var rows []money.Spent
	var failure error
	config := &fakeConfig{}
	s, err := New(Options{Groups: f, Specs: []fleet.GroupSpec{spends("new", team(0, 10)), spends("old", team(0, 10))},
		Logger: quiet, Reload: config.reload,
		Ended: func(context.Context) (money.Ended, error) { return money.Ended{Bills: len(rows), Rows: rows}, failure }})
	require.NoError(t, err)
	require.NoError(t, s.Start(t.Context()))
	c := newClient(t, s)
	f.change("old", func(l *fleet.Ledger) {
		l.Cost.Since = time.Now().UTC().Truncate(time.Second)
		l.Cost.At = l.Cost.Since.Add(time.Hour)
		l.Cost.Month, l.Cost.Currency = money.Of(10), fleet.DefaultCurrency
	})
	require.NoError(t, c.refresh())
	requireCode(t, codes.ResourceExhausted, c.increase("new", 1))

	config.write("v2", spends("new", team(0, 10)))
	require.NoError(t, c.refresh())
	require.NotContains(t, s.roster.Load().byID, "old")
	requireCode(t, codes.ResourceExhausted, c.increase("new", 1))
	closed := s.ended.all()
	require.Len(t, closed, 1)

	read := func(now []money.Spent, why error) {
		rows, failure = now, why
		s.ended.readNow()
		require.NoError(t, c.refresh())
	}
	read(closed, nil)
	require.Equal(t, closed, s.ended.all(), "once")
	requireCode(t, codes.ResourceExhausted, c.increase("new", 1))
	read(nil, errors.New("no Temporal"))
	requireCode(t, codes.ResourceExhausted, c.increase("new", 1))
	read([]money.Spent{{Account: "other", Month: closed[0].Month, Currency: "USD", Amount: money.Of(10)}}, nil)
	require.NoError(t, c.increase("new", 1))
}

// gatedGroups books a growth only when the test permits it.
type gatedGroups struct {
	*fakeGroups
	arrived chan string   // receives the group of each growth
	goOn    chan struct{} // when closed, every call may book
}

func gated(f *fakeGroups) gatedGroups {
	return gatedGroups{f, make(chan string, 10), make(chan struct{})}
}

func (s gatedGroups) Grow(ctx context.Context, group string, delta int, priceCap float64,
	seen fleet.Position) (fleet.Position, error) {
	s.arrived <- group
	select {
	case <-s.goOn:
	case <-ctx.Done():
		return fleet.Position{}, ctx.Err()
	}
	return s.fakeGroups.Grow(ctx, group, delta, priceCap, seen)
}

// The group gpu has the account "team". The group team has no account, so its own id is its account. Both groups
// share this account and never grow concurrently.
func TestGroupsOfAnAccountDoNotGrowConcurrently(t *testing.T) {
	f, m := newFake(), &fakeMarket{}
	m.nodes("milan", 200, 1)
	own := team(4, 0)
	own.Account = ""
	slow := gated(f)
	s, err := New(Options{Groups: slow, Specs: []fleet.GroupSpec{spends("team", own), spends("gpu", team(4, 0))},
		Logger: quiet, Market: m.current})
	require.NoError(t, err)
	require.NoError(t, s.Start(t.Context()))
	c := newClient(t, s)
	var booked atomic.Int32
	var all sync.WaitGroup
	for _, id := range []string{"team", "gpu"} {
		all.Go(func() {
			if c.increase(id, 4) == nil {
				booked.Add(4)
			}
		})
	}
	<-slow.arrived
	close(slow.goOn)
	all.Wait()
	require.EqualValues(t, 4, booked.Load())
}

// readNow makes the next refresh read the sums of ended groups.
func (e *ended) readNow() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.next = time.Time{}
}

// A group without instances was removed from the config while no server ran. It still counts in the month of its
// account.
func TestRemovedIdleGroupCountsInItsAccount(t *testing.T) {
	f := newFake()
	first := newClient(t, loaded(t, f, spends("old", team(0, 10))))
	f.change("old", func(l *fleet.Ledger) {
		l.Cost.Since = time.Now().UTC().Truncate(time.Second)
		l.Cost.At = l.Cost.Since.Add(time.Hour)
		l.Cost.Month, l.Cost.Currency = money.Of(10), fleet.DefaultCurrency
	})
	require.NoError(t, first.refresh())
	second := newClient(t, loaded(t, f, spends("new", team(0, 10))))
	require.NoError(t, second.refresh())
	requireCode(t, codes.ResourceExhausted, second.increase("new", 1))
}

// When the outcome of a group's last operation is unknown, the group may have grown. The server then refuses a
// further increase of this group, too.
func TestOwnUnknownGrowthStopsTheGroup(t *testing.T) {
	f := newFake()
	s := loaded(t, f, spends("cpu", team(9, 0)), spends("gpu", team(9, 0)))
	c := newClient(t, s)
	s.roster.Load().byID["cpu"].markUnknown(time.Now().Add(time.Minute))
	requireCode(t, codes.Unavailable, c.increase("cpu", 1))
}

// A slow booking of one account does not delay another account.
func TestSlowAccountDelaysNoOther(t *testing.T) {
	slow := gated(newFake())
	specs := []fleet.GroupSpec{}
	for _, account := range []string{"one", "two"} {
		for _, member := range []string{"a", "b"} {
			sp := team(9, 0)
			sp.Account = account
			specs = append(specs, spends(account+member, sp))
		}
	}
	s, err := New(Options{Groups: slow, Specs: specs, Logger: quiet})
	require.NoError(t, err)
	require.NoError(t, s.Start(t.Context()))
	c := newClient(t, s)
	var all sync.WaitGroup
	for _, id := range []string{"onea", "twoa"} {
		all.Go(func() { require.NoError(t, c.increase(id, 1)) })
	}
	both := []string{<-slow.arrived, <-slow.arrived} // neither has booked yet
	require.ElementsMatch(t, []string{"onea", "twoa"}, both)
	close(slow.goOn)
	all.Wait()
}

// While one call reads the sums of ended groups, no other call waits.
func TestReadOfEndedGroupsDelaysNoCall(t *testing.T) {
	f := newFake()
	hangs, goOn := make(chan struct{}), make(chan struct{})
	var slow atomic.Bool
	s, err := New(Options{Groups: f, Specs: []fleet.GroupSpec{spends("cpu", team(9, 0))}, Logger: quiet,
		Ended: func(context.Context) (money.Ended, error) {
			if slow.Load() {
				close(hangs)
				<-goOn
			}
			return money.Ended{}, nil
		}})
	require.NoError(t, err)
	require.NoError(t, s.Start(t.Context()))
	c := newClient(t, s)
	s.ended.readNow()
	slow.Store(true)
	var all sync.WaitGroup
	all.Go(func() { _ = c.refresh() })
	<-hangs
	require.Contains(t, c.groups(), "cpu")
	require.NoError(t, c.increase("cpu", 1))
	close(goOn)
	all.Wait()
}

// Three groups of an account grow, and their instances become Ready and are released, in random order. The account's
// nodes never cost more per hour than the limit.
func TestAccountNeverExceedsItsHourlyLimit(t *testing.T) {
	for r := range testkit.Cases(t) {
		f, m := newFake(), &fakeMarket{}
		hard := float64(1 + r.IntN(20))
		for p := range 1 + r.IntN(4) {
			m.nodes(string(rune('p'+p)), 1+r.IntN(6), float64(1+r.IntN(4)))
		}
		names := []string{"a", "b", "c"}
		specs := make([]fleet.GroupSpec, len(names))
		for i, name := range names {
			specs[i] = spends(name, team(hard, 0))
		}
		s, err := New(Options{Groups: f, Specs: specs, Logger: quiet, Market: m.current})
		require.NoError(t, err)
		require.NoError(t, s.Start(t.Context()))
		for range 12 {
			name := names[r.IntN(len(names))]
			switch r.IntN(4) {
			case 0, 1:
				_, _ = s.NodeGroupIncreaseSize(t.Context(), &protos.NodeGroupIncreaseSizeRequest{Id: name,
					Delta: 1 + r.Int32N(3)}) // refused or booked: the sum below must stay within the limit
			case 2:
				f.change(name, func(l *fleet.Ledger) { // one instance becomes Ready at its reserved price or less
					for _, e := range l.Entries {
						if e.Phase == fleet.Pending {
							e.Phase = fleet.Ready
							e.Offer = &fleet.Offer{Provider: "p", Hourly: e.PriceCap * r.Float64()}
							break
						}
					}
					l.Step(fleet.GroupInput{}, time.Now())
				})
			default:
				f.change(name, func(l *fleet.Ledger) {
					for _, e := range l.Entries {
						if e.Phase == fleet.Ready {
							e.Phase = fleet.Released
							break
						}
					}
					l.Step(fleet.GroupInput{}, time.Now())
				})
			}
			if r.IntN(2) == 0 {
				_, err := s.Refresh(t.Context(), &protos.RefreshRequest{})
				require.NoError(t, err)
			}
			var sum money.Money
			for _, name := range names {
				snapshot, err := f.Snapshot(t.Context(), name)
				require.NoError(t, err)
				b := snapshot.Cost.Balance(time.Now())
				sum += b.Rate + b.Reserved
			}
			require.LessOrEqual(t, sum, money.Of(hard))
		}
	}
}
