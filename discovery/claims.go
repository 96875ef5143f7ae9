package discovery

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// claim is an offer with the provider id that the offer's cluster reports. A cluster can report any id. If two claims
// have the same id, settle therefore needs other evidence. It prefers a declared claim: its offer is from a trusted
// source and contains the provider id. If no claim is declared, it prefers the claim with the credentials of the
// existing peering.
type claim struct {
	source   string
	offer    fleet.Offer
	declared bool
}

func (c *claim) String() string { return c.source + "/" + c.offer.Name }

// settle keeps at most one claim of each provider. It returns the offers of these claims, ordered by name, and a
// Problem for each rejected claim.
func settle(ctx context.Context, claims []claim, problems []Problem,
	peered func(context.Context) ([]fleet.Provider, error)) ([]fleet.Offer, []Problem, error) {
	byProvider := map[string][]*claim{}
	twice := false
	for n := range claims {
		c := &claims[n]
		byProvider[c.offer.Provider] = append(byProvider[c.offer.Provider], c)
		twice = twice || len(byProvider[c.offer.Provider]) > 1
	}
	var peers []fleet.Provider
	if twice && peered != nil {
		var err error
		if peers, err = peered(ctx); err != nil { // peers is empty, so settle prefers only declared claims
			problems = append(problems, NewProblem("", "", "peerings cannot be listed: %v", err))
		}
	}
	var kept []fleet.Offer
	for _, same := range byProvider {
		holder, why := holderOf(same, peers)
		for _, c := range same {
			switch {
			case len(same) == 1 || c == holder:
				kept = append(kept, c.offer)
			case holder != nil:
				problems = append(problems, NewProblem(c.source, c.offer.Name,
					"is of provider %s, whose offer %s is used instead, %s", c.offer.Provider, holder, why))
			default:
				problems = append(problems, NewProblem(c.source, c.offer.Name,
					"is of provider %s, like %s: none is used until one declares provider: %s", c.offer.Provider,
					others(c, same), c.offer.Provider))
			}
		}
	}
	slices.SortFunc(kept, func(a, b fleet.Offer) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Provider, b.Provider))
	})
	sortProblems(problems)
	return kept, problems, nil
}

// holderOf returns the preferred one of several claims with the same provider id, and the reason. It returns nil when
// no rule below selects a claim. Among several declared claims it prefers the claim of the first source. If the first
// source has two declared claims, holderOf prefers the declared claim with the credentials of the existing peering.
func holderOf(same []*claim, peers []fleet.Provider) (*claim, string) {
	declared := slices.DeleteFunc(slices.Clone(same), func(c *claim) bool { return !c.declared })
	if len(declared) == 1 || len(declared) > 1 && declared[0].source != declared[1].source {
		return declared[0], "which declares it"
	}
	if len(declared) > 1 {
		same = declared
	}
	for _, c := range same {
		if slices.ContainsFunc(peers, func(p fleet.Provider) bool {
			return p.ID == c.offer.Provider && referenceOf(p.Credentials) == referenceOf(c.offer.Credentials)
		}) {
			return c, "whose credentials made the peering"
		}
	}
	return nil, ""
}

func others(c *claim, same []*claim) string {
	var names []string
	for _, o := range same {
		if o != c {
			names = append(names, "offer "+o.String())
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
