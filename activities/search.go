package activities

import (
	"context"
	"slices"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/choice"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// These constants limit one search for a provider.
const (
	// firstReads is the number of providers that a search first reads, concurrently. After these reads another
	// provider may be the best one. If the search has not read that provider, it reads the whole shortlist, at most
	// moreReads times.
	firstReads = 8
	moreReads  = 3
	// A search does not read a provider whose state was read within freshFor, because in a burst hundreds of searches
	// would read the same providers.
	freshFor = 2 * time.Second
	// readBound is the longest time of one such read. If a read does not finish in time, the search uses the
	// provider's last read state.
	readBound = time.Second
	// A search uses the remembered state of a provider for rememberedFor after it was read, and a choice of another
	// scale-out for the same time. Afterwards the search treats the provider as free, and reads its state before it
	// chooses the provider. If a search finds no provider with free capacity, Discover searches again. For this second
	// search the time is recheckedAfter.
	rememberedFor  = time.Minute
	recheckedAfter = 20 * time.Second
)

// search contains the offers of one Discover, and the providers that it has read.
type search struct {
	a      *Activities
	in     DiscoverInput
	offers []fleet.Offer
	now    time.Time
	read   map[string]bool
	left   []string // the providers that the instance had chosen before; their fresh states do not show the refusal
}

// shortlist ranks the offers and reads the best providers. It repeats this until the best provider has been read.
func (s *search) shortlist(ctx context.Context, remembered time.Duration) (short []choice.Candidate,
	counts map[string]int) {
	short, counts = s.choose(remembered)
	for n := range 1 + moreReads {
		most := len(short)
		if n == 0 {
			most = min(firstReads, most)
		}
		if !s.fits(short) || s.known(short[0].Offer.Provider) || ctx.Err() != nil {
			break
		}
		s.readFirst(ctx, short[:most])
		short, counts = s.choose(remembered)
	}
	return short, counts
}

// choose ranks the offers and records the best candidate, so that no concurrent search of this worker chooses the same
// capacity.
func (s *search) choose(remembered time.Duration) (short []choice.Candidate, counts map[string]int) {
	s.a.chosen.turn.Lock()
	defer s.a.chosen.turn.Unlock()
	s.a.chosen.forget(s.in.Instance) // its own place is free for it
	if short, counts = s.rank(remembered); s.fits(short) {
		at := fleet.Attempt{Group: s.in.Spec.ID, Instance: s.in.Instance}
		s.a.chosen.set(short[0].Offer.Provider, at, s.in.Spec.Shape, s.a.now())
	}
	return short, counts
}

// known reports whether the provider's state was read for this search, or shortly before it.
func (s *search) known(provider string) bool {
	_, age := s.a.Entities.Remembered(provider)
	return s.read[provider] || age < freshFor && !slices.Contains(s.left, provider)
}

// readFirst reads the fitting providers concurrently. The search does not repeat the read of a provider that did not
// answer.
func (s *search) readFirst(ctx context.Context, short []choice.Candidate) {
	var next []string
	for n := range short {
		if id := short[n].Offer.Provider; !s.known(id) && s.fits(short[n:]) {
			s.read[id] = true
			next = append(next, id)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, readBound)
	defer cancel()
	wait.ForAll(next, choice.MaxCandidates, func(_ int, id string) { _, _ = s.a.Entities.Provider(ctx, id) })
}

// fits reports whether the first candidate may be chosen.
func (s *search) fits(short []choice.Candidate) bool {
	return len(short) > 0 && choice.Keep(s.in.Spec, short[:1], s.in.Refused, s.now).Chosen != ""
}

// rank makes the shortlist from the last read provider states, minus the capacity that scale-outs of this worker have
// chosen since.
func (s *search) rank(remembered time.Duration) ([]choice.Candidate, map[string]int) {
	all, rank := make([]choice.Candidate, 0, len(s.offers)), s.in.Rank
	for _, o := range s.offers {
		taken := s.in.Taken[o.Provider]
		state, age := s.a.Entities.Remembered(o.Provider)
		if age > remembered {
			state = fleet.ProviderSnapshot{}
		}
		c := choice.CandidateOf(o, state)
		own := held(state, s.in.Spec.ID)
		own += s.a.chosen.subtractFrom(&c, state, s.in.Spec.ID, age, remembered, s.now)
		rank.Ahead -= max(0, own-taken)
		c.Take(taken-own, s.in.Spec.Shape)
		c.Own, c.Failures = max(own, taken), choice.Weight(s.in.Failures[o.Provider], s.now)
		all = append(all, c)
	}
	rank.Ahead = max(0, rank.Ahead)
	return choice.Shortlist(s.in.Spec, all, s.in.Refused, rank, s.now)
}
