package grpcserver

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
)

// affords is how many more nodes the group's hard limits of spending allow, and what they may cost an hour altogether.
// For each node at least the smallest amount of money is left: nothing would bound a node with less.
func (s *Server) affords(g *group, p *picture, now time.Time) (nodes int, left money.Money) {
	if sp := g.terms.Load().spec.Spending; sp != nil {
		left = sp.Left(s.balance(g, p, now))
	} else {
		left = money.Unbounded
	}
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
		return 0, status.Errorf(codes.ResourceExhausted, "increase node group %s: %s", g.id,
			sp.Refuses(s.balance(g, p, now), more))
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

// reaches reports which limits of spending the group's account has reached; nothing before the group's first snapshot.
func (s *Server) reaches(g *group, now time.Time) []money.Reach {
	p, sp := g.picture.Load(), g.terms.Load().spec.Spending
	if p == nil || sp == nil {
		return nil
	}
	return sp.Reaches(s.balance(g, p, now))
}

// warnOfSpending logs which limits have been reached, when that has changed.
func (s *Server) warnOfSpending(list []*group, now time.Time) {
	for _, g := range list {
		var reached []string
		for _, r := range s.reaches(g, now) {
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

// Times of the sums of ended groups.
const (
	endedEvery = time.Minute
	endedBound = 2 * time.Second
)

// ended is what groups that have ended cost this month, by account.
type ended struct {
	read func(ctx context.Context) ([]money.Spent, error) // see Options.Ended

	mu sync.Mutex
	at time.Time // when it was last read
	// rows are the rows that were read last; closed are the groups that this server has closed since, without a row yet.
	rows, closed []money.Spent
	failing      bool
}

// readEnded reads what ended groups cost, once a minute. When that fails, the sums that were read last are used.
func (s *Server) readEnded(ctx context.Context) {
	e := &s.ended
	if e.read == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if time.Since(e.at) < endedEvery {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, endedBound)
	defer cancel()
	rows, err := e.read(ctx)
	if failing := err != nil; failing != e.failing {
		if e.failing = failing; failing {
			s.log.Warn("what ended node groups cost this month cannot be read; limits of spending use what was read last",
				"error", err)
		}
	}
	if err != nil {
		return
	}
	e.at, e.rows = time.Now(), rows
	e.closed = slices.DeleteFunc(e.closed, func(c money.Spent) bool { return slices.ContainsFunc(rows, c.SameLife) })
}

// add remembers the costs of a group that this server closes, until the hub publishes them.
func (e *ended) add(account string, p *picture) {
	if p == nil || p.Cost.Since.IsZero() {
		return
	}
	bill := money.Bill{Group: p.Group, Account: account}
	bill.Cost, _ = p.Cost.Until(time.Now())
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = append(e.closed, bill.Spent())
	if len(e.closed) > maxClosed {
		e.closed = e.closed[1:]
	}
}

// maxClosed bounds the closed groups that a server remembers.
const maxClosed = 1000

func (e *ended) all() []money.Spent {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Concat(e.rows, e.closed)
}

// balance returns the balance of a group's account: of the group by the picture, of the other groups of the account by
// their last pictures, and of the ended groups.
func (s *Server) balance(g *group, p *picture, now time.Time) money.Balance {
	spec := &g.terms.Load().spec
	account, currency := spec.Account(), spec.CurrencyOrDefault()
	running := []money.Member{{Group: g.id, Cost: p.Cost}}
	for _, other := range s.roster.Load().list {
		if other.id == g.id || other.account() != account {
			continue
		}
		if p := other.picture.Load(); p != nil {
			running = append(running, money.Member{Group: other.id, Cost: p.Cost})
		}
	}
	return money.Together(account, currency, running, s.ended.all(), now)
}

// mayShare waits until no other group of a shared account grows. Until done is called, no other group grows: two groups
// cannot pass a limit together. It fails while the size of another group of the account is not known.
func (s *Server) mayShare(ctx context.Context, g *group) (done func(), err error) {
	sp := g.terms.Load().spec.Spending
	if sp == nil || sp.Account == "" {
		return func() {}, nil
	}
	if err := s.spending.Acquire(ctx, 1); err != nil {
		return nil, toStatus(increase, g.id, err)
	}
	for _, other := range s.roster.Load().list {
		if other.id != g.id && other.account() == sp.Account && (other.isDirty() || other.picture.Load() == nil) {
			s.spending.Release(1)
			return nil, status.Errorf(codes.Unavailable, "increase node group %s: spending cannot be checked until node group "+
				"%s, which shares account %s, has been read", g.id, other.id, sp.Account)
		}
	}
	return func() { s.spending.Release(1) }, nil
}

// sharing returns the number of groups that can grow on the group's account, the group itself included.
func (r *roster) sharing(g *group) int {
	n := 1
	for _, other := range r.list {
		if other != g && other.account() == g.account() && other.growable() {
			n++
		}
	}
	return n
}

// account is the account that the group's costs belong to.
func (g *group) account() string { return g.terms.Load().spec.Account() }
