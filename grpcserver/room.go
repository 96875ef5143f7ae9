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

// figure holds the size and the prices that the market allows for a group.
type figure struct {
	// ceiling bounds the group's max by the offered capacity.
	ceiling int
	// price holds the hourly price of a node on the dearest offer that has capacity for a node, or 0 if no offer has.
	price float64
	// dearest holds the hourly price of a node on the dearest offer that the group may use, including offers without
	// capacity for a node now.
	dearest float64
	// places lists the offers with the number of nodes that still fit on each, the cheapest offer first.
	places []places
}

// places is the number of nodes of a group that fit on one offer, and their price.
type places struct {
	nodes  int
	price  float64 // per node and hour; 0 without a price
	peered bool    // a peering exists, so that a node is Ready sooner
}

// measure computes to which size each group can grow with the present offers, and at what price. CA receives this size
// as the group's max, because CA treats missing capacity as a failure and backs off from the group. measure runs once
// per refresh, so that max stays constant within one of CA's loops.
func (s *Server) measure() {
	if s.market == nil {
		return
	}
	s.measuring.Lock() // so that no figures replace newer ones
	defer s.measuring.Unlock()
	list, now := groupStates(s.roster.Load().list), time.Now()
	figures := make(map[string]figure, len(list))
	m, known := s.market()
	free := subtract(m, list)
	s.countForeign(list, m)
	candidates := slices.Clone(free)
	for _, g := range list { // instances that wait for a provider use their capacity first
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

// countForeign counts and logs the offers that are priced in another currency than the groups. All groups have the same
// currency.
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

// groupState is the state of a group at one moment, because the state may change while the figures are computed.
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

// figure returns the group's figures of the last refresh, or false if none were computed.
func (s *Server) figure(id string) (figure, bool) {
	if all := s.figures.Load(); all != nil {
		f, ok := (*all)[id]
		return f, ok
	}
	return figure{}, false
}

// rooms maps groups and providers to the number of nodes of the group that fit on the provider.
type rooms map[string]map[string]int

// of returns the number of nodes of the group that fit on all providers together.
func (r rooms) of(g groupState) (n int) {
	for _, free := range r[g.id] {
		n += free
	}
	return n
}

// waiting returns the other groups that have instances without a provider and can use a provider that the group can
// use.
func (r rooms) waiting(g groupState, list []groupState) (others []groupState) {
	for _, other := range list {
		if other.group != g.group && other.seen.waiting > 0 && overlap(r[g.id], r[other.id]) {
			others = append(others, other)
		}
	}
	return others
}

// sharers returns the number of groups that compete for the capacity of g's providers, including g. Another group
// competes if it can use one of these providers and either has waiting instances or is balanced by CA with g.
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

// harmless returns the number of additional instances of the group, up to most, that fit on the offers without
// displacing waiting instances of other groups. The order in which instances of several groups choose offers is
// unknown, so harmless tries both extremes. If this group chooses first, it may leave too little capacity for another
// shape, or none on the only offer that another group may use. If it chooses last, its own instances may not fit.
// judged counts the evaluated offers. Once it exceeds careful, harmless counts every instance as harmless.
func (g groupState) harmless(most int, others []groupState, free []choice.Candidate, judged *int, now time.Time) int {
	if most < 1 || len(others) == 0 {
		return most
	}
	without := func(order []groupState, more int) (n int) { // counts instances that fit on no offer
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

// place subtracts the capacity that n instances of the group would use from the candidates. It returns the number of
// instances that fit on no candidate.
func (g groupState) place(n int, candidates []choice.Candidate, now time.Time) int {
	choice.Own(candidates, g.seen.on)
	return choice.Place(g.spec.InstanceSpec, n, candidates, now)
}

// share returns one sharer's equal share of room, rounded up. Rounding down could turn a room of 1 into 0.
func share(room, sharers int) int { return (room + sharers - 1) / sharers }

// sharers returns the number of groups that CA may grow together with g, including g, because it balances scale-outs
// between them.
func (r *roster) sharers(g *group) int {
	n := 1
	for _, other := range r.list {
		if other != g && balance(g, other) {
			n++
		}
	}
	return n
}

// balance reports whether CA splits a scale-out of g between g and other: both have the same balance label, and other
// can grow.
func balance(g, other *group) bool {
	value := g.terms.Load().spec.Labels[fleet.LabelBalance]
	return value != "" && value == other.terms.Load().spec.Labels[fleet.LabelBalance] && other.growable()
}

func (g *group) growable() bool {
	t, p := g.terms.Load(), g.picture.Load()
	return p != nil && !t.retired && g.unusable.Load() == nil && p.Target < t.spec.Max
}

// subtract returns the offers without the capacity that instances of this server's groups use. The market may not show
// the newest instances yet, and it does not list the instances that it shows. So subtract computes the lendable
// capacity minus all instances, and uses the lower of this amount and the amount that the market shows as free.
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
