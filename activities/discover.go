package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// DiscoverInput asks who lends what the instance needs.
type DiscoverInput struct {
	Instance fleet.Instance `json:"instance"`
}

// DiscoverOutput is the shortlist. It enters the history: at most fleet.MaxCandidates candidates.
type DiscoverOutput struct {
	Candidates []fleet.Candidate `json:"candidates,omitempty"`
	// Counts says how many offers each filter took out, candidates beyond the shortlist included.
	Counts map[string]int `json:"counts,omitempty"`
	// Problems are offers that could not be used at all, named, in words.
	Problems []string `json:"problems,omitempty"`
}

// Discover asks the catalog for all offers, subtracts what is held already, and returns the shortlist. No offer at all is
// not an error: Select says so. Blocks for as long as the catalog's sources take.
func (a *Activities) Discover(ctx context.Context, in DiscoverInput) (DiscoverOutput, error) {
	ctx, _, stop := heartbeat(ctx)
	defer stop()
	offers, problems, err := a.Catalog.Offers(ctx)
	if err != nil {
		return DiscoverOutput{}, wall(ctx, "", fmt.Errorf("list offers: %w", err))
	}
	all := make([]fleet.Candidate, 0, len(offers))
	for _, o := range offers {
		c := fleet.Candidate{Offer: o}
		state, err := a.Holds.Status(ctx, o.Provider)
		switch {
		case err == nil:
			state.Offer = &o
			c.Free, c.Nodes = state.Free(), state.Live()
		case !errors.Is(err, fleet.ErrUnavailable):
			return DiscoverOutput{}, wall(ctx, o.Provider, fmt.Errorf("read holds of provider %s: %w", o.Provider, err))
		}
		all = append(all, c)
	}
	short, counts := fleet.Shortlist(in.Instance.Spec, all, in.Instance.Refused, a.now())
	out := DiscoverOutput{Candidates: short, Counts: counts}
	for _, p := range problems {
		out.Problems = append(out.Problems, p.String())
	}
	slices.Sort(out.Problems)
	if n := len(out.Problems) - fleet.MaxCandidates; n > 0 {
		out.Problems = append(out.Problems[:fleet.MaxCandidates], fmt.Sprintf("and %d more", n))
	}
	return out, nil
}

// SelectInput is what Select chooses from.
type SelectInput struct {
	Instance fleet.Instance `json:"instance"`
	Found    DiscoverOutput `json:"found"`
}

// SelectOutput is the choice; Offer is nil when nothing fits, and Failure then says why.
type SelectOutput struct {
	Offer    *fleet.Offer   `json:"offer,omitempty"`
	Failure  *fleet.Failure `json:"failure,omitempty"`
	Decision fleet.Decision `json:"decision"`
}

// Select chooses the provider of the next attempt. It only computes; it is an activity so that the scoring may change
// without breaking the replay of running workflows.
func (a *Activities) Select(_ context.Context, in SelectInput) (SelectOutput, error) {
	candidates := slices.Clone(in.Found.Candidates)
	for i, c := range candidates {
		if free, ok := in.Instance.Free[c.Offer.Provider]; ok {
			candidates[i].Free = free
		}
	}
	decision := fleet.Choose(in.Instance.Spec, candidates, in.Instance.Refused, a.now())
	out := SelectOutput{Decision: decision}
	for i := range candidates {
		if candidates[i].Offer.Provider == decision.Chosen {
			out.Offer = &candidates[i].Offer
			return out, nil
		}
	}
	out.Failure = fleet.NewFailure(fleet.CodeNoOffer, "", "", nothingFits(in, decision))
	return out, nil
}

func nothingFits(in SelectInput, d fleet.Decision) string {
	var why []string
	for _, v := range d.Verdicts {
		why = append(why, fmt.Sprintf("%s: %s", v.Provider, v.Reason))
	}
	why = append(why, in.Found.Problems...)
	if len(why) == 0 {
		if n := in.Found.Counts; len(n) > 0 {
			why = append(why, fmt.Sprintf("filtered out: %v", n))
		} else {
			why = append(why, "there is no offer")
		}
	}
	return fmt.Sprintf("no provider for group %s: %s", in.Instance.Spec.ID, strings.Join(why, "; "))
}
