package activities

import (
	"context"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/choice"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// Bounds of one search for a provider.
const (
	// firstReads is how many providers a search reads before its first choice, all at once. When they turn out to be
	// taken, it reads the whole shortlist that follows, at most moreReads times.
	firstReads = 8
	moreReads  = 3
	// readBound is how long one of these reads may take; a provider that is not read in time is judged as remembered.
	readBound = time.Second
	// rememberedFor is how long a read of a provider is remembered. Later the provider counts as free, and is read before
	// it is chosen. When nothing has room, what was read longer than recheckedAfter ago counts as free, too.
	rememberedFor  = time.Minute
	recheckedAfter = 20 * time.Second
)

// search is one Discover: the offers, and the providers that it has read.
type search struct {
	a      *Activities
	in     DiscoverInput
	offers []fleet.Offer
	now    time.Time
	read   map[string]bool
}

// shortlist ranks the offers and reads the providers that come first, until the chosen one has been read.
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

// readFirst reads the providers of those that fit, all at once. One that does not answer is not read again by this
// search.
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

// fits reports whether the first of these may be chosen.
func (s *search) fits(short []choice.Candidate) bool {
	return len(short) > 0 && choice.Keep(s.in.Spec, short[:1], s.in.Refused, s.now).Chosen != ""
}

// rank makes the shortlist of what is remembered, with what scale-outs of this worker have chosen since.
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
		own += s.a.chosen.takeFrom(&c, state, s.in.Spec.ID, s.now.Add(-age), s.now)
		rank.Ahead -= max(0, own-taken)
		c.Take(taken-own, s.in.Spec.Shape)
		c.Own, c.Failures = max(own, taken), choice.Weight(s.in.Failures[o.Provider], s.now)
		all = append(all, c)
	}
	rank.Ahead = max(0, rank.Ahead)
	return choice.Shortlist(s.in.Spec, all, s.in.Refused, rank, s.now)
}
