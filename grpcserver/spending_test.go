package grpcserver

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/utils/ptr"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

func hourly(hard float64) *money.Spending {
	return &money.Spending{Hourly: money.SpendingLimit{Hard: ptr.To(hard)}}
}

func spends(id string, s *money.Spending) fleet.GroupSpec {
	g := spec(id, 0, 10)
	g.Spending = s
	return g
}

// The first n instances of a group become Ready on a provider, at a price. The other instances stay in creation.
func (f *fakeGroups) makes(group, provider string, price float64, n int) {
	f.change(group, func(l *fleet.Ledger) {
		for _, e := range l.Entries[:n] {
			e.Phase, e.Offer = fleet.Ready, &fleet.Offer{Provider: provider, Hourly: price}
		}
		l.Step(fleet.GroupInput{}, time.Now())
	})
}

// If CA grows a group to max, the nodes cost no more than the limit, at the prices of the offers that they need. A
// request above max is refused with the code ResourceExhausted.
func TestMaxStaysWithinTheHourlyLimit(t *testing.T) {
	f, m := newFake(), &fakeMarket{}
	m.nodes("cheap", 2, 1)
	m.nodes("dear", 4, 2)
	c := onMarket(t, f, m, spends("cpu", hourly(6)), spends("free", nil))
	require.NoError(t, c.refresh())
	require.Equal(t, 3, c.max("cpu"), "three nodes at the price of the third")
	require.Equal(t, 6, c.max("free"))

	err := c.increase("cpu", 4)
	requireCode(t, codes.ResourceExhausted, err)
	require.Equal(t, "increase node group cpu: spending.hourly.hard is 6 USD, "+
		"the running nodes cost 0 an hour, and 8 more is "+
		"requested", status.Convert(err).Message())
	require.Zero(t, f.called("grow"), "the group was not called")

	require.NoError(t, c.increase("cpu", 2))
	require.NoError(t, c.refresh())
	require.Equal(t, 3, c.max("cpu"), "each of the two may cost 2")
	f.makes("cpu", "cheap", 1, 2)
	require.NoError(t, c.refresh())
	require.Equal(t, 4, c.max("cpu"), "2 of 6 are spent: places of 2 are left for two")
	requireCode(t, codes.ResourceExhausted, c.increase("cpu", 3))
	require.NoError(t, c.increase("cpu", 2))
	require.Equal(t, 4, c.max("cpu"), "never below what is")
	require.NoError(t, c.remove("cpu", c.ids("cpu")[2:]...))
	f.change("cpu", func(l *fleet.Ledger) {
		for _, e := range l.Entries[2:] {
			e.Phase = fleet.Released
		}
	})
	require.NoError(t, c.refresh())
	require.Equal(t, 4, c.max("cpu"))
}

// An expensive provider that is full does not reduce the number of nodes that the limit allows, because no node can be
// placed on it.
func TestFullProviderDoesNotReduceMax(t *testing.T) {
	f, m := newFake(), &fakeMarket{}
	m.nodes("cheap", 2, 1)
	m.nodes("full", 0, 4)
	c := onMarket(t, f, m, spends("cpu", hourly(5)))
	require.NoError(t, c.refresh())
	require.NoError(t, c.increase("cpu", 3))
}

// A group's ledger contains a spending limit that the server does not know. The group refuses the increase with the
// same code as the server would.
func TestGroupRefusesToExceedTheLimit(t *testing.T) {
	f := newFake()
	s := loaded(t, f, spends("cpu", nil))
	c := newClient(t, s)
	f.change("cpu", func(l *fleet.Ledger) {
		limited := *l.Spec
		limited.Spending = hourly(1)
		l.Spec = &limited
	})
	require.NoError(t, c.increase("cpu", 1), "no price is known: it counts as free")
	f.makes("cpu", "milan", 1, 1)
	err := c.increase("cpu", 1)
	requireCode(t, codes.ResourceExhausted, err)
	require.Contains(t, status.Convert(err).Message(), "spending.hourly.hard is 1 USD, the running nodes cost 1 an hour")
	require.Equal(t, 1, c.target("cpu"))
}

// When the costs of a month reach the limit, max equals the target size. The next month restores max.
func TestMaxStaysWithinTheMonthlyLimit(t *testing.T) {
	f, m := newFake(), &fakeMarket{}
	m.nodes("milan", 8, 1)
	month := &money.Spending{Monthly: money.SpendingLimit{Hard: ptr.To(50.)}}
	var log testkit.Buffer
	s, err := New(Options{Groups: f, Specs: []fleet.GroupSpec{spends("cpu", month)}, Market: m.current,
		Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	require.NoError(t, s.Start(t.Context()))
	c := newClient(t, s)
	require.NoError(t, c.increase("cpu", 1))
	require.Equal(t, 8, c.max("cpu"))
	came := func(to float64) { // in a month that does not end during the test
		f.change("cpu", func(l *fleet.Ledger) {
			l.Cost.Month, l.Cost.At = money.Of(to), time.Now().Add(time.Hour).UTC().Truncate(time.Second)
		})
	}
	came(50)
	require.NoError(t, c.refresh())
	require.NoError(t, c.refresh())
	require.Equal(t, 1, c.max("cpu"))
	err = c.increase("cpu", 1)
	requireCode(t, codes.ResourceExhausted, err)
	require.Contains(t, status.Convert(err).Message(), "spending.monthly.hard is 50 USD, and this month came to 50; it "+
		"may grow from ")
	require.Equal(t, 1, strings.Count(log.String(), "has reached limits of its spending"), "once")
	came(49)
	require.NoError(t, c.refresh())
	require.Equal(t, 8, c.max("cpu"))
	require.NoError(t, c.increase("cpu", 1))
}

func TestMetricsShowSpending(t *testing.T) {
	f := newFake()
	sp := hourly(3)
	sp.Hourly.Soft, sp.Monthly.Soft = ptr.To(1.5), ptr.To(1000.)
	s := loaded(t, f, spends("cpu", sp), spends("gpu", nil))
	c := newClient(t, s)
	require.NoError(t, c.increase("cpu", 2))
	f.makes("cpu", "milan", 1.5, 1)
	f.change("cpu", func(l *fleet.Ledger) {
		l.Entries[1].Phase, l.Entries[1].Offer = fleet.Ready, &fleet.Offer{Provider: "turin"}
		l.Step(fleet.GroupInput{}, time.Now())
		milan := l.Cost.Providers["milan"]
		milan.Today, milan.Total = money.Of(20), money.Of(90)
		l.Cost.Providers["milan"], l.Cost.At = milan, time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	})
	require.NoError(t, c.refresh())
	lines := scrape(t, NewMetrics(s))
	has(t, lines, `cost_per_hour{currency="USD",group="cpu",provider="milan"} 1.5`,
		`cost_per_hour{currency="USD",group="cpu",provider="turin"} 0`,
		`cost{currency="USD",group="cpu",provider="milan"} 90`,
		`instances_unpriced{group="cpu",provider="turin"} 1`, `instances_unpriced{group="cpu",provider="milan"} 0`,
		`cost_month{currency="USD",group="cpu"} 20`, `cost_month{currency="USD",group="gpu"} 0`,
		`spending_limit{currency="USD",group="cpu",level="soft",period="hour"} 1.5`,
		`spending_limit_reached{group="cpu",level="soft",period="hour"} 1`,
		`spending_limit_reached{group="cpu",level="hard",period="hour"} 0`,
		`spending_limit_reached{group="cpu",level="soft",period="month"} 0`)
	require.Len(t, names(lines, "spending_limit_reached"), 3)
}

// The nodes use the cheapest offers. A limit allows a number of nodes if this number, multiplied by the highest price
// of the used offers, is within the limit. Full offers do not count.
func TestNodesThatALimitPays(t *testing.T) {
	cheapAndDear := []places{{nodes: 2, price: 1}, {nodes: 2, price: 2}}
	for name, c := range map[string]struct {
		hard   *float64
		places []places
		nodes  int
	}{
		"no limit":                   {places: []places{{nodes: 1, price: 9}}, nodes: maxTarget},
		"nothing left":               {hard: ptr.To(0.), places: []places{{nodes: 1}}, nodes: 0},
		"no places":                  {hard: ptr.To(1.), nodes: maxTarget},
		"less than one":              {hard: ptr.To(1.), places: []places{{nodes: 2, price: 2}}, nodes: 0},
		"just one":                   {hard: ptr.To(2.), places: []places{{nodes: 2, price: 2}}, nodes: 1},
		"just all":                   {hard: ptr.To(4.), places: []places{{nodes: 2, price: 2}}, nodes: maxTarget},
		"the cheap ones":             {hard: ptr.To(5.), places: cheapAndDear, nodes: 2},
		"one of the dear ones":       {hard: ptr.To(6.), places: cheapAndDear, nodes: 3},
		"free ones":                  {hard: ptr.To(2.), places: []places{{nodes: 3}, {nodes: 2, price: 1}}, nodes: 3},
		"more than the free ones":    {hard: ptr.To(4.), places: []places{{nodes: 3}, {nodes: 2, price: 1}}, nodes: 4},
		"a full one is no dear one":  {hard: ptr.To(2.), places: []places{{2, 1, false}, {0, 2, false}}, nodes: maxTarget},
		"a full one is no cheap one": {hard: ptr.To(2.), places: []places{{price: 1}, {nodes: 2, price: 2}}, nodes: 1},
	} {
		t.Run(name, func(t *testing.T) {
			sp := &money.Spending{Hourly: money.SpendingLimit{Hard: c.hard}}
			s := loaded(t, newFake(), spends("cpu", sp))
			s.figures.Store(&map[string]figure{"cpu": {places: c.places}})
			g := s.roster.Load().list[0]
			nodes, left := s.affordable(g, g.picture.Load(), time.Now())
			require.Equal(t, c.nodes, nodes)
			if c.hard == nil {
				require.Equal(t, money.Unbounded, left)
				return
			}
			require.Equal(t, money.Of(*c.hard), left)
			if nodes < maxTarget {
				_, err := s.checkSpending(g, nodes+1, time.Now())
				requireCode(t, codes.ResourceExhausted, err)
			}
			_, err := s.checkSpending(g, nodes, time.Now())
			require.NoError(t, err)
		})
	}
}

// placed fills the offers with n nodes, the cheapest offer first, and returns the price of the last offer that it
// uses.
func TestMostExpensiveNeededPlace(t *testing.T) {
	f := figure{places: []places{{nodes: 2, price: 1}, {nodes: 0, price: 9}, {nodes: 1, price: 2}, {nodes: 3, price: 4}}}
	for n, want := range []float64{0, 1, 1, 2, 4, 4, 4, 4} {
		require.Equal(t, want, f.placed(n), "%d nodes", n)
	}
}
