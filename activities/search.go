package activities

import (
	"context"
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
	// readBound is the longest time of one such read. If a read does not finish in time, the search uses the
	// provider's last read state.
	readBound = time.Second
	// A search uses the remembered state of a provider for rememberedFor after it was read. Afterwards the search
	// treats the provider as free, and reads its state before it chooses the provider. If a search finds no provider
	// with free capacity, Discover searches again; this second search treats a provider as free when its state is
	// older than recheckedAfter.
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
}

// shortlist ranks the offers and reads the best providers. It repeats this until the best provider has been read.
func (s *search) shortlist(ctx context.Context, remembered time.Duration) (short []choice.Candidate,
	counts map[string]int) {
	short, counts = s.rank(remembered)
	for n := range 1 + moreReads {
		most := len(short)
		if n == 0 {
			most = min(firstReads, most)
		}
		if !s.fits(short) || s.read[short[0].Offer.Provider] || ctx.Err() != nil {
			break
		}
		s.readFirst(ctx, short[:most])
		short, counts = s.rank(remembered)
	}
	return short, counts
}

// readFirst reads the fitting providers concurrently. The search does not repeat the read of a provider that did not
// answer.
func (s *search) readFirst(ctx context.Context, short []choice.Candidate) {
	var next []string
	for n := range short {
		if id := short[n].Offer.Provider; !s.read[id] && s.fits(short[n:]) {
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
		own += s.a.chosen.subtractFrom(&c, state, s.in.Spec.ID, s.now.Add(-age), s.now)
		rank.Ahead -= max(0, own-taken)
		c.Take(taken-own, s.in.Spec.Shape)
		c.Own, c.Failures = max(own, taken), choice.Weight(s.in.Failures[o.Provider], s.now)
		all = append(all, c)
	}
	rank.Ahead = max(0, rank.Ahead)
	return choice.Shortlist(s.in.Spec, all, s.in.Refused, rank, s.now)
}
