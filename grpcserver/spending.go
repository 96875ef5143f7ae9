package grpcserver

import (
	"cmp"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
)

// affords is how many more nodes the group's hard limits of spending allow, and what they may cost an hour altogether.
// For each node at least the smallest amount of money is left: nothing would bound a node with less.
func (s *Server) affords(g *group, p *picture, now time.Time) (nodes int, left money.Money) {
	left = g.terms.Load().spec.Spending.Left(p.Cost, now)
	if left == money.Unbounded {
		return maxTarget, left
	}
	f, _ := s.figure(g.id)
	return min(f.within(left), int(min(left, maxTarget))), left
}

// within is how many nodes may cost so much an hour altogether. Nodes are reckoned at the price of the dearest of the
// places that they need; a place without a price costs nothing.
func (f figure) within(left money.Money) (nodes int) {
	seen := 0
	for _, place := range f.places {
		if place.nodes == 0 {
			continue // full: no node is placed there
		}
		seen += place.nodes
		price := money.Of(place.price)
		if price > 0 && int64(left/price) < int64(seen) {
			return max(nodes, int(left/price))
		}
		nodes = seen
	}
	return maxTarget // other limits say how many there are
}

// maySpend refuses growth that would pass a hard limit of spending: ResourceExhausted, which none of our other refusals
// is. Else it returns what each of the nodes may cost in an hour, 0 where nobody knows prices or nothing is bounded: no
// more than the dearest offer, so that others keep what is not needed.
func (s *Server) maySpend(g *group, delta int, now time.Time) (priceCap float64, err error) {
	p, sp := g.picture.Load(), g.terms.Load().spec.Spending
	if p == nil || sp == nil || delta < 1 {
		return 0, nil
	}
	f, _ := s.figure(g.id)
	nodes, left := s.affords(g, p, now)
	if delta > nodes {
		more := money.Money(0)
		if left > 0 {
			more = max(money.Of(f.placed(delta)*float64(delta)), left+1)
		}
		return 0, status.Errorf(codes.ResourceExhausted, "increase node group %s: %s", g.id, sp.Refuses(p.Cost, more, now))
	}
	if left == money.Unbounded || f.dearest == 0 {
		return 0, nil
	}
	return min(cmp.Or(f.price, f.dearest), (left / money.Money(delta)).Float()), nil
}

// placed is the price of the dearest place that n nodes need; of the dearest of all where there are not so many.
func (f figure) placed(n int) (price float64) {
	for _, place := range f.places {
		if n <= 0 {
			break
		}
		if place.nodes > 0 {
			price = place.price
		}
		n -= place.nodes
	}
	return price
}

// reaches tells which limits of spending the group has reached; nothing before its first snapshot.
func (g *group) reaches(now time.Time) []money.Reach {
	if p := g.picture.Load(); p != nil {
		return g.terms.Load().spec.Spending.Reaches(p.Cost, now)
	}
	return nil
}

// warnOfSpending logs which limits have been reached, when that has changed.
func (s *Server) warnOfSpending(list []*group, now time.Time) {
	for _, g := range list {
		var reached []string
		for _, r := range g.reaches(now) {
			if r.Reached {
				reached = append(reached, fmt.Sprintf("%s %s limit: %.6g of %.6g", r.Level, r.Period, r.Spent, r.Limit))
			}
		}
		levels := len(reached)
		if was := g.limitsReached.Swap(int64(levels)); levels > int(was) {
			s.log.Warn("node group has reached limits of its spending", "group", g.id, "limits", reached,
				"currency", g.terms.Load().spec.CurrencyOrDefault())
		}
	}
}

var (
	descCostRate = desc("cost_per_hour", "What the instances cost per hour now, of those whose price is known.", "group",
		"provider", "currency")
	descCostTotal = desc("cost", "What the instances have cost since the sums began. A node group that is read late "+
		"corrects it downwards: use delta(), not increase().", "group", "provider", "currency")
	descCostMonth = desc("cost_month", "What the instances have cost in this calendar month (UTC).", "group", "currency")
	descUnpriced  = desc("instances_unpriced", "Instances that cost an unknown amount: their offer had no price.", "group",
		"provider")
	descSpending = desc("spending_limit", "Limit of the node group's spending.", "group", "period", "level",
		"currency")
	descSpendReached = desc("spending_limit_reached", "1 while the limit of the node group's spending is reached.",
		"group", "period", "level")
)

// collectCost exports what a group's instances cost.
func collectCost(g *group, p *picture, now time.Time, gauge func(d *prometheus.Desc, value float64, labels ...string)) {
	cost, _ := p.Cost.Until(now)
	for id, c := range cost.Providers {
		gauge(descCostRate, c.Rate.Float(), p.Group, id, cost.Currency)
		gauge(descCostTotal, c.Total.Float(), p.Group, id, cost.Currency)
		gauge(descUnpriced, float64(c.Unpriced), p.Group, id)
	}
	if cost.Currency != "" {
		gauge(descCostMonth, cost.ThisMonth().Float(), p.Group, cost.Currency)
	}
	for _, r := range g.reaches(now) {
		gauge(descSpending, r.Limit, p.Group, r.Period, r.Level, cost.Currency)
		gauge(descSpendReached, bit(r.Reached), p.Group, r.Period, r.Level)
	}
}
