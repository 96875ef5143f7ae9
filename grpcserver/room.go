package grpcserver

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/choice"
)

// unknownRoom is the number of nodes by which a group may grow while the offers are not known.
const unknownRoom = 1

// figure holds the values that measure computes for one group: the maximum size that the offers permit, and the
// prices of the group's nodes.
type figure struct {
	// ceiling is the group's largest size for which the offers have capacity.
	ceiling int
	// price is the hourly price of a node on the most expensive offer in the field places, or 0 without such an
	// offer.
	price float64
	// dearest is the highest hourly price of a node on any offer that the group may use. Unlike the field price, it
	// also considers offers that are too small for a node.
	dearest float64
	// places lists the offers that the group could use if all their capacity were free, the cheapest offer first.
	places []places
}

// places holds the number of nodes of a group that still fit on one offer, and their price.
type places struct {
	nodes  int
	price  float64 // per node and hour; 0 without a price
	peered bool    // a peering with the provider exists, so that a node is Ready sooner
}

// measure computes, for each group, the maximum size for which the present offers have capacity, and the prices of
// nodes. The max that CA receives does not exceed this size. Otherwise CA would request nodes for which capacity is
// missing, treat this as a failure, and back off from the group. measure runs once per refresh, so that max stays
// constant within one of CA's loops.
func (s *Server) measure() {
	if s.market == nil {
		return
	}
	s.measuring.Lock() // so that older figures cannot replace newer figures
	defer s.measuring.Unlock()
	list, now := groupStates(s.roster.Load().list), time.Now()
	figures := make(map[string]figure, len(list))
	m, known := s.market()
	free := subtract(m, list)
	s.countForeign(list, m)
	candidates := slices.Clone(free)
	for _, g := range list { // subtract the capacity that waiting instances will use
		g.place(g.seen.waiting, candidates, now)
	}
	all, left := make(rooms, len(list)), make(rooms, len(list))
	for _, g := range list {
		all[g.id] = choice.Room(g.spec.InstanceSpec, free, now)
		left[g.id] = choice.Room(g.spec.InstanceSpec, candidates, now)
	}
	peered, judged := map[string]bool{}, 0
	for _, o := range m.Offers {
		peered[o.Provider] = o.Peered
	}
	for _, g := range list {
		if !g.read {
			continue
		}
		room := g.harmless(left.of(g), all.waiting(g, list), free, &judged, now)
		f := figure{ceiling: g.seen.Target + share(room, left.sharers(g, list)),
			dearest: choice.Dearest(g.spec.InstanceSpec, candidates, now)}
		if !known {
			f.ceiling = g.seen.Target + unknownRoom
		}
		if offers := choice.Matching(g.spec.InstanceSpec, candidates, now); len(offers) > 0 {
			f.price = choice.Price(g.spec.InstanceSpec, offers[len(offers)-1])
			for _, o := range offers {
				f.places = append(f.places, places{left[g.id][o.Provider], choice.Price(g.spec.InstanceSpec, o),
					peered[o.Provider]})
			}
		}
		figures[g.id] = f
	}
	s.figures.Store(&figures)
}

// countForeign counts the offers whose currency differs from the currency of the groups, and logs them when their
// number has changed. All groups have the same currency.
func (s *Server) countForeign(list []groupState, m market.Market) {
	var names []string
	for _, o := range m.Offers {
		if len(list) > 0 && choice.Incomparable(list[0].spec.InstanceSpec, o.Candidate().Offer) != "" {
			names = append(names, o.Name+" ("+o.Currency+")")
		}
	}
	if was := s.foreign.Swap(int64(len(names))); len(names) > 0 && was != int64(len(names)) {
		s.log.Warn("offers are not used: their price is in another currency than the node groups'", "offers", names,
			"currency", list[0].spec.CurrencyOrDefault())
	}
}

// groupState is a copy of the group's state. measure uses the copy, because the state may change while measure runs.
type groupState struct {
	*group
	spec fleet.GroupSpec
	seen *picture // empty until the first snapshot
	read bool     // the group has a snapshot
}

func groupStates(list []*group) []groupState {
	out := make([]groupState, len(list))
	for i, g := range list {
		p := g.picture.Load()
		out[i] = groupState{g, g.terms.Load().spec, cmp.Or(p, &picture{}), p != nil}
	}
	return out
}

// figure returns the group's figure of the last refresh. It returns false if the last refresh has computed no figure
// for the group.
func (s *Server) figure(id string) (figure, bool) {
	if all := s.figures.Load(); all != nil {
		f, ok := (*all)[id]
		return f, ok
	}
	return figure{}, false
}

// rooms contains, by group and then by provider, the number of nodes of the group that fit on the provider.
type rooms map[string]map[string]int

// of returns the number of nodes of the group that fit on all providers together.
func (r rooms) of(g groupState) (n int) {
	for _, free := range r[g.id] {
		n += free
	}
	return n
}

// waiting returns the other groups that compete with g now. These groups have instances without a provider, and can
// use one of g's providers.
func (r rooms) waiting(g groupState, list []groupState) (others []groupState) {
	for _, other := range list {
		if other.group != g.group && other.seen.waiting > 0 && overlap(r[g.id], r[other.id]) {
			others = append(others, other)
		}
	}
	return others
}

// sharers returns the number of groups that compete for the capacity of g's providers, including g. Another group
// competes if it can use one of these providers and one of two conditions is true: it has waiting instances, or it
// has the same value of the balancing label as g.
func (r rooms) sharers(g groupState, list []groupState) int {
	n := 1
	for _, other := range list {
		competes := other.seen.waiting > 0 || balance(g.group, other.group)
		if other.group != g.group && competes && overlap(r[g.id], r[other.id]) {
			n++
		}
	}
	return n
}

// maxEvaluations bounds the number of offers that harmless evaluates in one refresh. Each evaluation takes two
// microseconds.
const maxEvaluations = 200_000

// harmless returns how many additional instances of the group fit on the offers without displacing waiting instances
// of the other groups. The parameter `most` limits the result. The order in which instances of several groups choose
// offers is unknown, so harmless tries two orders: this group chooses first, and this group chooses last. If it
// chooses first, it may leave too little capacity for another shape, or no capacity on the only offer that another
// group may use. If it chooses last, its own instances may not fit. *judged counts the evaluated offers. When *judged
// exceeds maxEvaluations, harmless stops evaluating and treats further instances as harmless.
func (g groupState) harmless(most int, others []groupState, free []choice.Candidate, judged *int, now time.Time) int {
	if most < 1 || len(others) == 0 {
		return most
	}
	without := func(order []groupState, more int) (n int) { // counts the waiting instances that fit on no offer
		if *judged += len(free) * len(order); *judged > maxEvaluations {
			return 0
		}
		candidates := slices.Clone(free)
		for _, o := range order {
			waiting := o.seen.waiting
			if o.group == g.group {
				waiting += more
			}
			n += o.place(waiting, candidates, now)
		}
		return n
	}
	first, last := append([]groupState{g}, others...), append(others, g)
	atFirst, atLast := without(first, 0), without(last, 0)
	return sort.Search(most, func(n int) bool {
		return without(first, n+1) > atFirst || without(last, n+1) > atLast
	})
}

// place subtracts from the candidates the capacity that n instances of the group would use. It returns the number of
// instances for which no candidate has capacity.
func (g groupState) place(n int, candidates []choice.Candidate, now time.Time) int {
	choice.Own(candidates, g.seen.on)
	return choice.Place(g.spec.InstanceSpec, n, candidates, now)
}

// share divides room, a number of nodes, by the number of sharers. It rounds up, so that a room of 1 does not become
// 0.
func share(room, sharers int) int { return (room + sharers - 1) / sharers }

// sharers returns the number of groups between which CA balances a scale-out of g, including g.
func (r *roster) sharers(g *group) int {
	n := 1
	for _, other := range r.list {
		if other != g && balance(g, other) {
			n++
		}
	}
	return n
}

// balance reports whether CA splits a scale-out of g between g and a second group. CA does this if both have the same
// value of the balance label, and the second group can grow.
func balance(g, other *group) bool {
	value := g.terms.Load().spec.Labels[fleet.LabelBalance]
	return value != "" && value == other.terms.Load().spec.Labels[fleet.LabelBalance] && other.growable()
}

func (g *group) growable() bool {
	t, p := g.terms.Load(), g.picture.Load()
	return p != nil && !t.retired && g.unusable.Load() == nil && p.Target < t.spec.Max
}

// subtract returns the offers without the capacity that instances of this server's groups use. The market's free
// capacity already excludes most of these instances, but perhaps not the newest, and it is not known which instances
// it excludes. Therefore subtract computes a second amount: the offered capacity minus all instances of the groups.
// For each resource it uses the lower of the two amounts.
func subtract(m market.Market, list []groupState) []choice.Candidate {
	candidates := make([]choice.Candidate, len(m.Offers))
	for i, o := range m.Offers {
		c, left := o.Candidate(), choice.Candidate{Offer: fleet.Offer{Lendable: o.Lendable}}
		for _, g := range list {
			left.Take(g.seen.on[o.Provider], g.spec.Shape)
		}
		c.Nodes = max(c.Nodes, left.Nodes)
		if c.Free == nil {
			c.Free = left.Free
		}
		for name, quantity := range left.Free {
			if shown, ok := c.Free[name]; ok && quantity.Cmp(shown) < 0 {
				c.Free[name] = quantity
			}
		}
		candidates[i] = c
	}
	return candidates
}

func overlap(a, b map[string]int) bool {
	for provider := range a {
		if _, ok := b[provider]; ok {
			return true
		}
	}
	return false
}
