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

// Merge joins catalogs and asks them in parallel. Order them by trust in their writers: when several offer the same
// provider, the offer of the first is used and the others become Problems, so that a writer of a later catalog cannot
// take a provider from an earlier one. A catalog that fails is a Problem while another answers; Merge fails when all
// fail.
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

	var problems []Problem
	var failed []error
	from := map[string]string{} // provider -> catalog/offer
	var kept []fleet.Offer
	for i, a := range answers {
		problems = append(problems, a.problems...)
		if a.err != nil {
			failed = append(failed, a.err)
			problems = append(problems, Problem{Source: m[i].Name(), Message: cut(a.err.Error())})
			continue
		}
		for _, o := range a.offers {
			if first, taken := from[o.Provider]; taken {
				problems = append(problems, Problem{Source: m[i].Name(), Offer: o.Name, Message: cut(fmt.Sprintf(
					"is of provider %s, of which offer %s serves already; keep one", o.Provider, first))})
				continue
			}
			from[o.Provider] = m[i].Name() + "/" + o.Name
			kept = append(kept, o)
		}
	}
	if len(m) > 0 && len(failed) == len(m) {
		return nil, problems, fmt.Errorf("list offers: %w", errors.Join(failed...))
	}
	slices.SortFunc(kept, func(a, b fleet.Offer) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Provider, b.Provider))
	})
	sortProblems(problems)
	return kept, problems, nil
}
