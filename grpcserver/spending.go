package grpcserver

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
)

// affordable returns how many more nodes the group's hard limits of spending allow, and the hourly cost that is left
// for all of these nodes together. It counts each node with at least the smallest unit of money. The reason is that
// the amount left is divided into a price bound for each node, and a bound of 0 would permit any price.
func (s *Server) affordable(g *group, p *picture, now time.Time) (nodes int, left money.Money) {
	sp := g.terms.Load().spec.Spending
	if sp == nil {
		return maxTarget, money.Unbounded
	}
	if left = sp.Left(s.balance(g, p, now)); left == money.Unbounded {
		return maxTarget, left
	}
	f, _ := s.figure(g.id)
	return min(f.within(left), int(min(left, maxTarget))), left
}

// within returns how many nodes together cost at most left per hour, when they use the cheapest offers first. It
// assumes that each node costs as much as the most expensive of the offers used. An offer without a price costs
// nothing.
func (f figure) within(left money.Money) (nodes int) {
	seen := 0
	for _, place := range f.places {
		if place.nodes == 0 {
			continue // the offer is full
		}
		seen += place.nodes
		price := money.Of(place.price)
		if price > 0 && int64(left/price) < int64(seen) {
			return max(nodes, int(left/price))
		}
		nodes = seen
	}
	return maxTarget // other limits bound the number of nodes
}

// checkSpending refuses growth that would exceed a hard limit of spending. The code of this refusal is
// ResourceExhausted, which no other refusal of a mutation has. Otherwise checkSpending returns the bound on the
// hourly price of each node. Without a hard limit or without prices, the bound is 0. The bound is at most the price
// of the most expensive offer, so that the new nodes do not reserve more of the limit than they can cost.
func (s *Server) checkSpending(g *group, delta int, now time.Time) (priceCap float64, err error) {
	p, sp := g.picture.Load(), g.terms.Load().spec.Spending
	if p == nil || sp == nil || delta < 1 {
		return 0, nil
	}
	f, _ := s.figure(g.id)
	nodes, left := s.affordable(g, p, now)
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

// placed fills the offers with n nodes, the cheapest offer first, and returns the price of the last offer that it
// uses. If fewer than n nodes fit, this is the most expensive offer with free capacity.
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

// reaches returns the group's limits of spending, each with the amount spent. It returns nil before the group's first
// snapshot.
func (s *Server) reaches(g *group, now time.Time) []money.Reach {
	p, sp := g.picture.Load(), g.terms.Load().spec.Spending
	if p == nil || sp == nil {
		return nil
	}
	return sp.Reaches(s.balance(g, p, now))
}

// warnOfSpending logs the limits that a group has reached, if their number has increased since the last call.
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

// These constants bound how the costs of ended groups are read and stored.
const (
	endedEvery = time.Minute
	endedRetry = 10 * time.Second // after a failure
	endedBound = 2 * time.Second
	// closedFor is the time for which this server stores the costs of a group that it has closed. The hub needs less
	// time to publish these costs.
	closedFor = 3 * time.Minute
	maxClosed = 1000 // the number of closed groups whose costs this server stores
)

// ended holds the costs of groups that have ended this month. It also holds the costs of groups that run without an
// instance and are not configured.
type ended struct {
	read    func(ctx context.Context) (money.Ended, error) // see Options.Ended
	reading sync.Mutex                                     // held by the call that reads

	mu      sync.Mutex
	next    time.Time // the time of the next read
	failing bool
	// rows holds the result of the last successful read. closed holds the groups that this server has closed and that
	// are not in rows yet.
	rows   []money.Spent
	closed []closedGroup
	// idle lists the groups that run without an instance and are not configured.
	idle []money.Spent
}

// closedGroup is a group that this server has closed.
type closedGroup struct {
	money.Spent
	at time.Time
}

// readEnded reads the costs of ended groups if the last read was more than a minute ago. After a failure the result
// of the last successful read stays in use. If another call is reading, readEnded returns immediately.
func (s *Server) readEnded(ctx context.Context) {
	e := &s.ended
	if e.read == nil || !e.reading.TryLock() {
		return
	}
	defer e.reading.Unlock()
	e.mu.Lock()
	due := !time.Now().Before(e.next)
	e.mu.Unlock()
	if !due {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, endedBound)
	defer cancel()
	found, err := e.read(ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil {
		if e.next = time.Now().Add(endedRetry); !e.failing {
			s.log.Warn("the costs of ended node groups cannot be read; limits of spending use the sums that were read last",
				"error", err)
		}
		e.failing = true
		return
	}
	e.next, e.rows, e.failing = time.Now().Add(endedEvery), found.Rows, false
	e.closed = slices.DeleteFunc(e.closed, func(c closedGroup) bool {
		return slices.ContainsFunc(found.Rows, c.SameLife) || time.Since(c.at) > closedFor
	})
}

// spentOf returns this month's costs of a group, which it computes from the group's snapshot.
func spentOf(account string, s fleet.Snapshot) money.Spent {
	bill := s.Bill()
	bill.Account = account
	bill.Cost, _ = bill.Cost.Until(time.Now())
	return bill.Spent()
}

// add stores the costs of a group that this server closes. They stay stored until the hub has published them.
func (e *ended) add(account string, s fleet.Snapshot) {
	if s.Cost.IsEmpty() {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = append(e.closed, closedGroup{spentOf(account, s), time.Now()})
	if len(e.closed) > maxClosed {
		e.closed = e.closed[1:]
	}
}

// setIdle replaces the stored costs of groups that run without an instance and are not configured.
func (e *ended) setIdle(idle []money.Spent) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.idle = idle
}

// all returns the costs of all groups that are not served. A group that ran several times has one row for each run.
// The result contains each run only once, although a run may be in two of the lists rows, closed and idle.
func (e *ended) all() []money.Spent {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := slices.Clone(e.rows)
	for _, c := range e.closed {
		if !slices.ContainsFunc(all, c.SameLife) {
			all = append(all, c.Spent)
		}
	}
	for _, i := range e.idle {
		if !slices.ContainsFunc(all, i.SameLife) {
			all = append(all, i)
		}
	}
	return all
}

// balance returns the balance of the group's account. The balance includes three parts: the group's costs in p, the
// costs of the account's other groups in their last snapshots, and the costs of groups that are not served.
func (s *Server) balance(g *group, p *picture, now time.Time) money.Balance {
	spec := &g.terms.Load().spec
	account, currency := spec.Account(), spec.CurrencyOrDefault()
	running := []money.Member{{Group: g.id, Cost: p.Cost}}
	for _, other := range s.roster.Load().partners(g) {
		if p := other.picture.Load(); p != nil {
			running = append(running, money.Member{Group: other.id, Cost: p.Cost})
		}
	}
	return money.Together(account, currency, running, s.ended.all(), now)
}

// lockAccount ensures that only one group of an account grows at a time, so that two groups cannot exceed a limit
// together. It blocks while another group of the account grows, and the caller must call done when the group has
// grown. It does nothing if the group has no hard limit or is the account's only group. It returns Unavailable while
// the size of a group of the account is unknown.
func (s *Server) lockAccount(ctx context.Context, g *group) (done func(), err error) {
	sp := g.terms.Load().spec.Spending
	if sp == nil || sp.Hourly.Hard == nil && sp.Monthly.Hard == nil || len(s.roster.Load().partners(g)) == 0 {
		return func() {}, nil
	}
	lock, _ := s.spending.LoadOrStore(g.account(), semaphore.NewWeighted(1))
	turn := lock.(*semaphore.Weighted)
	if err := turn.Acquire(ctx, 1); err != nil {
		return nil, toStatus(increase, g.id, err)
	}
	for _, member := range append(s.roster.Load().partners(g), g) {
		if member.isDirty() || member.picture.Load() == nil {
			turn.Release(1)
			return nil, status.Errorf(codes.Unavailable, "increase node group %s: spending cannot be checked until node group "+
				"%s of account %s has been read", g.id, member.id, g.account())
		}
	}
	return func() { turn.Release(1) }, nil
}

// partners returns the other groups of the group's account.
func (r *roster) partners(g *group) (others []*group) {
	for _, other := range r.list {
		if other.id != g.id && other.account() == g.account() {
			others = append(others, other)
		}
	}
	return others
}

// sharing returns the number of the account's groups that can grow, including the group itself.
func (r *roster) sharing(g *group) int {
	n := 1
	for _, other := range r.partners(g) {
		if other.growable() {
			n++
		}
	}
	return n
}

// account returns the account to which the group's costs belong.
func (g *group) account() string { return g.terms.Load().spec.Account() }
