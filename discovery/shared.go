package discovery

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Recent bounds the age of the offers from which the worker chooses a provider. Afterwards the workflow of the chosen
// provider decides with the newest offer.
const Recent = 5 * time.Second

// sharedFor bounds the duration of one shared query. The query continues when its callers have stopped waiting.
const sharedFor = 30 * time.Second

// Shared lets many callers use the same answer of a Catalog. Therefore the number of callers does not affect how
// often the sources are queried.
type Shared struct {
	catalog Catalog
	flights singleflight.Group

	mu   sync.Mutex // guards last
	last answer
}

// answer is one result of the catalog, and the time at which the query for it began.
type answer struct {
	at       time.Time
	offers   []fleet.Offer
	problems []Problem
	err      error
}

// Share returns a Shared for the catalog. A process should use the same Shared as long as it runs.
func Share(catalog Catalog) *Shared { return &Shared{catalog: catalog} }

// Within returns a Catalog that uses the last answer again if the query for it began less than age ago, even if the
// answer is an error. Otherwise this Catalog queries the shared catalog, or waits for a query that is already
// running. If age is 0, it never uses an answer again.
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
		flight := r.flights.DoChan("", func() (any, error) { return r.query(ctx), nil })
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

// query queries the catalog. It continues when ctx ends, because other callers also wait for the answer.
func (s *Shared) query(ctx context.Context) answer {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sharedFor)
	defer cancel()
	a := answer{at: time.Now()}
	a.offers, a.problems, a.err = s.catalog.Offers(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = a
	return a
}
