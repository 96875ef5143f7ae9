package discovery

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Recent is how old the offers may be by which a provider is chosen. The provider has the last word, by its newest one.
const Recent = 5 * time.Second

// sharedFor bounds one question, which outlives those who wait for it.
const sharedFor = 30 * time.Second

// Shared is a Catalog of whose answers many make use: how often its sources are asked does not depend on how many ask.
type Shared struct {
	catalog Catalog
	flights singleflight.Group

	mu   sync.Mutex // guards last
	last answer
}

// answer is what the catalog said, and when it was asked.
type answer struct {
	at       time.Time
	offers   []fleet.Offer
	problems []Problem
	err      error
}

// Share makes a Shared. Keep one for the life of the process.
func Share(catalog Catalog) *Shared { return &Shared{catalog: catalog} }

// Within is a Catalog that answers what the shared one was asked at most age ago, errors too, or asks it. With age 0 it
// asks, and joins those who have just asked.
func (s *Shared) Within(age time.Duration) Catalog { return recent{s, age} }

type recent struct {
	*Shared
	age time.Duration
}

// Offers implements Catalog.
func (r recent) Offers(ctx context.Context) ([]fleet.Offer, []Problem, error) {
	r.mu.Lock()
	a := r.last
	r.mu.Unlock()
	if a.at.IsZero() || time.Since(a.at) >= r.age {
		flight := r.flights.DoChan("", func() (any, error) { return r.ask(ctx), nil })
		select {
		case done := <-flight:
			a = done.Val.(answer)
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
	}
	offers := make([]fleet.Offer, len(a.offers))
	for i, o := range a.offers {
		offers[i] = CopyOffer(o)
	}
	return offers, slices.Clone(a.problems), a.err
}

// ask asks the catalog, also when the one who began it has gone: others wait for the same answer.
func (s *Shared) ask(ctx context.Context) answer {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sharedFor)
	defer cancel()
	a := answer{at: time.Now()}
	a.offers, a.problems, a.err = s.catalog.Offers(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = a
	return a
}
