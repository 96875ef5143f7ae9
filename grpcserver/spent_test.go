package grpcserver

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/choice"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// choose lets each waiting instance of a group choose an offer, as a scale-out does.
func choose(f *fakeGroups, group string, offers []market.Offer, waits func(*fleet.Entry) bool) {
	f.change(group, func(l *fleet.Ledger) {
		for _, e := range l.Entries {
			if e.Phase == fleet.Ready || e.Phase == fleet.Failed || e.Phase == fleet.Released || !waits(e) {
				continue
			}
			s := *e.Spec
			if e.PriceCap > 0 && s.Pays(e.PriceCap) {
				s.MaxPrice = e.PriceCap
			}
			d := choice.Choose(s, market.Market{Offers: offers}.Candidates(), nil, choice.Rank{}, time.Now())
			if e.Phase = fleet.Failed; d.Chosen != "" {
				e.Phase, e.Offer = fleet.Ready, &fleet.Offer{Provider: d.Chosen, Hourly: d.Assessments[0].Price}
			}
		}
		l.Step(fleet.GroupInput{}, time.Now())
	})
}

// The limit is 1 an hour. Three nodes in creation reserve 0.333333 each, and leave 0.000001. This rest allows one
// more node, and bounds the price of that node. It does not allow two nodes: the second node would have no price
// bound and could take any offer.
func TestTinyRestOfTheLimitAllowsOneNode(t *testing.T) {
	f, m := newFake(), &fakeMarket{}
	m.nodes("cheap", 3, 0.3)
	m.nodes("dear", 3, 5)
	c := onMarket(t, f, m, spends("cpu", hourly(1)))
	require.NoError(t, c.increase("cpu", 3))
	m.nodes("unpriced", 5, 0)
	require.NoError(t, c.refresh())
	require.Equal(t, 4, c.max("cpu"))
	err := c.increase("cpu", 2)
	requireCode(t, codes.ResourceExhausted, err)
	require.Equal(t, "increase node group cpu: spending.hourly.hard is 1 USD, "+
		"the running nodes cost 0 an hour, nodes that "+
		"are being created cost up to 0.999999, and 2e-06 more is requested", status.Convert(err).Message())
	require.NoError(t, c.increase("cpu", 1))
	all := func(*fleet.Entry) bool { return true }
	m.set(func() { m.Offers = m.Offers[:2] }) // the offer without a price disappears before the instances choose
	choose(f, "cpu", m.Offers, all)
	rate, _ := f.published("cpu").Cost.Rate()
	require.Equal(t, 0.9, rate.Float())
}

// An offer with a price is too small for a node now, but may become large enough before the instance chooses. The
// offer's price therefore counts.
func TestPriceOfATooSmallOfferCounts(t *testing.T) {
	f, m := newFake(), &fakeMarket{}
	m.nodes("dear", 0, 5)
	m.nodes("unpriced", 1, 0)
	c := onMarket(t, f, m, spends("cpu", hourly(3)))
	require.NoError(t, c.refresh())
	require.NoError(t, c.increase("cpu", 1))
	require.Equal(t, 3.0, f.published("cpu").Cost.Reserved.Float())
}

// spender is a group with an hourly limit and two servers, on a market whose prices and capacity change.
type spender struct {
	*testing.T
	rand    *rand.Rand
	groups  *fakeGroups
	market  *fakeMarket
	spec    fleet.GroupSpec
	clients []client
	mixed   bool // some offers have no price
}

func newSpender(t *testing.T, r *rand.Rand, hard float64) *spender {
	s := &spender{T: t, rand: r, groups: newFake(), market: &fakeMarket{}, spec: spends("cpu", hourly(hard)),
		mixed: r.IntN(4) == 0}
	s.spec.Max = 50
	for n := range 1 + r.IntN(5) {
		s.market.nodes(fmt.Sprint("p", n), r.IntN(6), s.price(n))
	}
	s.clients = []client{s.started(), s.started()}
	return s
}

// started returns a server that has just started.
func (s *spender) started() client { return newDirect(s, marketed(s.T, s.groups, s.market, s.spec)) }

// price returns the price of an offer. The first offer always has a price, because the limit does not apply on a market
// without prices.
func (s *spender) price(offer int) float64 {
	if offer > 0 && s.mixed && s.rand.IntN(4) == 0 {
		return 0
	}
	return 0.1 + s.rand.Float64()*4
}

// step makes one random change or call. If obeys is true, CA requests no more than max.
func (s *spender) step(obeys bool) {
	c := s.clients[s.rand.IntN(2)]
	switch s.rand.IntN(8) {
	case 0:
		s.market.set(func() {
			n := s.rand.IntN(len(s.market.Offers))
			o := &s.market.Offers[n]
			o.Price, o.Lendable = s.price(n), times(int64(s.rand.IntN(7)), s.spec.Shape)
			o.Free = o.Lendable
		})
	case 1:
		require.NoError(s, c.refresh())
	case 2: // a server restarts
		s.clients[s.rand.IntN(2)] = s.started()
	case 3, 4:
		delta := 1 + s.rand.IntN(5)
		if obeys {
			delta = min(delta, c.max("cpu")-c.target("cpu"))
		}
		if delta > 0 {
			_ = c.increase("cpu", int32(delta)) // the rate of spending shows whether the answer was right
		}
	case 5, 6:
		now, _ := s.market.current()
		choose(s.groups, "cpu", now.Offers, func(*fleet.Entry) bool { return s.rand.IntN(3) > 0 })
	case 7:
		s.groups.change("cpu", func(l *fleet.Ledger) {
			for _, e := range l.Entries {
				if (e.Phase == fleet.Ready || e.Phase == fleet.Failed) && s.rand.IntN(3) == 0 {
					e.Phase = fleet.Released
				}
			}
			l.Step(fleet.GroupInput{}, time.Now())
		})
	}
}

// Prices and capacity change, nodes fail and are released, and servers restart or use old offers. The nodes with a
// price never exceed the hourly limit. In half of the cases CA requests no more than max.
func TestHourlyLimitIsNeverExceeded(t *testing.T) {
	tries, grown := 0, 0
	for r := range testkit.Cases(t) {
		hard, obeys := 1+r.Float64()*20, r.IntN(2) == 0
		s := newSpender(t, r, hard)
		for range 25 {
			s.step(obeys)
			rate, _ := s.groups.published("cpu").Cost.Rate()
			require.LessOrEqual(t, rate.Float(), hard+1e-6)
		}
		tries, grown = tries+1, grown+s.groups.called("grow")
	}
	require.Greater(t, grown, tries, "instances are booked")
}
