package discovery

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// NamedCatalog is a Catalog with a name, which Problems contain. *Resolved implements NamedCatalog.
type NamedCatalog interface {
	Catalog
	Name() string
}

// Merge returns a Catalog that queries the given catalogs in parallel and combines their offers. Callers pass the
// catalogs with the most trusted writers first: if several catalogs declare the same provider, the offer of the first
// of these catalogs is used. If a catalog fails, a Problem reports it. If all catalogs fail, Offers returns an error.
func Merge(catalogs ...NamedCatalog) Catalog { return merged(catalogs) }

type merged []NamedCatalog

func (m merged) Offers(ctx context.Context) ([]fleet.Offer, []Problem, error) {
	type answer struct {
		claims   []claim
		problems []Problem
		err      error
	}
	answers := make([]answer, len(m))
	var all sync.WaitGroup
	for i, c := range m {
		a := &answers[i]
		all.Go(func() { a.claims, a.problems, a.err = claimsOf(ctx, c) })
	}
	all.Wait()

	var claims []claim
	var problems []Problem
	var failed []error
	for i, a := range answers {
		problems = append(problems, a.problems...)
		if a.err != nil {
			failed = append(failed, a.err)
			problems = append(problems, NewProblem(m[i].Name(), "", "%v", a.err))
			continue
		}
		claims = append(claims, a.claims...)
	}
	if len(m) > 0 && len(failed) == len(m) {
		return nil, problems, fmt.Errorf("list offers: %w", errors.Join(failed...))
	}
	return settle(ctx, claims, problems, m.peered())
}

// claimsOf returns a catalog's offers as claims. Claims can be declared only if the catalog is a *Resolved.
func claimsOf(ctx context.Context, c NamedCatalog) (claims []claim, problems []Problem, err error) {
	if r, ok := c.(*Resolved); ok {
		return r.claims(ctx)
	}
	offers, problems, err := c.Offers(ctx)
	for _, o := range offers {
		claims = append(claims, claim{source: c.Name(), offer: o})
	}
	return claims, problems, err
}

// peered returns the function Options.Peered of the first catalog that has one, or nil.
func (m merged) peered() func(context.Context) ([]fleet.Provider, error) {
	for _, c := range m {
		if r, ok := c.(*Resolved); ok && r.options.Peered != nil {
			return r.options.Peered
		}
	}
	return nil
}
