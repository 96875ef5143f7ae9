package discovery

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Recent bounds the age of the offers from which a provider is chosen. The provider itself decides by its newest offer.
const Recent = 5 * time.Second

// sharedFor bounds one shared request, which outlives its callers.
const sharedFor = 30 * time.Second

// Shared is a Catalog that shares each answer between many callers: the number of callers does not change how often the
// sources are queried.
type Shared struct {
	catalog Catalog
	flights singleflight.Group

	mu   sync.Mutex // guards last
	last answer
}

// answer is one result of the catalog, and the time of its request.
type answer struct {
	at       time.Time
	offers   []fleet.Offer
	problems []Problem
	err      error
}

// Share makes a Shared. Keep one for the life of the process.
func Share(catalog Catalog) *Shared { return &Shared{catalog: catalog} }

// Within returns a Catalog that reuses the shared answer, even an error, if its request is at most age old. Otherwise
// it queries the shared catalog. With age 0 it always queries, and joins a query that is running.
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

// ask queries the catalog. The call continues after its first caller has left, because other callers share its answer.
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
