package discovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// NamedCatalog is a Catalog with a name for Problems. *Resolved is one.
type NamedCatalog interface {
	Catalog
	Name() string
}

// Merge joins catalogs, which it asks at the same time. A provider offered by more than one of them is refused, by
// "<catalog>/<offer>" names. A catalog that fails is a Problem as long as another answers; when all fail, so does Merge.
func Merge(catalogs ...NamedCatalog) Catalog { return merged(catalogs) }

type merged []NamedCatalog

func (m merged) Offers(ctx context.Context) ([]fleet.Offer, []Problem, error) {
	type answer struct {
		offers   []fleet.Offer
		problems []Problem
		err      error
	}
	answers := make([]answer, len(m))
	var all sync.WaitGroup
	for i, c := range m {
		all.Add(1)
		go func() {
			defer all.Done()
			a := &answers[i]
			a.offers, a.problems, a.err = c.Offers(ctx)
		}()
	}
	all.Wait()

	var offers []fleet.Offer
	var problems []Problem
	var failed []error
	from := map[string][]string{} // provider -> catalog/offer
	for i, a := range answers {
		problems = append(problems, a.problems...)
		if a.err != nil {
			failed = append(failed, a.err)
			problems = append(problems, Problem{Source: m[i].Name(), Message: cut(a.err.Error())})
			continue
		}
		offers = append(offers, a.offers...)
		for _, o := range a.offers {
			from[o.Provider] = append(from[o.Provider], m[i].Name()+"/"+o.Name)
		}
	}
	if len(m) > 0 && len(failed) == len(m) {
		return nil, problems, fmt.Errorf("list offers: %w", errors.Join(failed...))
	}
	kept := offers[:0:0]
	for _, o := range offers {
		if len(from[o.Provider]) == 1 {
			kept = append(kept, o)
		}
	}
	for provider, names := range from {
		if len(names) > 1 {
			problems = append(problems, duplicate("", provider, names))
		}
	}
	slices.SortFunc(kept, func(a, b fleet.Offer) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Provider, b.Provider))
	})
	sortProblems(problems)
	return kept, problems, nil
}
