package activities

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/choice"
)

// DiscoverInput asks which providers offer what an instance needs.
type DiscoverInput struct {
	Instance string             `json:"instance"`
	Spec     fleet.InstanceSpec `json:"spec"`
	Refused  []string           `json:"refused,omitempty"`
	Rank     choice.Rank        `json:"rank"`
	// Taken is how many instances of the group each provider has, as its group counted when it started this one.
	Taken map[string]int `json:"taken,omitempty"`
	// Failures are when providers have failed instances of the group before it started this one.
	Failures map[string][]time.Time `json:"failures,omitempty"`
}

// DiscoverOutput is the shortlist, the chosen candidate first. It enters the history: at most choice.MaxCandidates
// candidates.
type DiscoverOutput struct {
	Candidates []choice.Candidate `json:"candidates,omitempty"`
	// Counts says how many offers each filter took out, candidates beyond the shortlist included.
	Counts map[string]int `json:"counts,omitempty"`
	// Problems are offers that could not be used at all, named, in words.
	Problems []string `json:"problems,omitempty"`
}

// Discover asks the catalog for all offers, subtracts what is held already, and returns the shortlist. No offer at all
// is not an error: Select says so. It ranks the offers by what this worker remembers of their providers, and reads only
// the first of the shortlist anew (design rule: the cost of a scale-out does not depend on the number of offers). What
// is not read may be taken already: the provider decides when it is asked. Blocks for as long as the catalog's sources
// take, and for up to four round trips to Temporal.
func (a *Activities) Discover(ctx context.Context, in DiscoverInput) (DiscoverOutput, error) {
	offers, problems, err := a.Catalog.Offers(ctx)
	if err != nil {
		return DiscoverOutput{}, toApplicationError(ctx, "", fmt.Errorf("list offers: %w", err))
	}
	a.chosen.forget(in.Instance)
	s := search{a: a, in: in, offers: offers, now: a.now(), read: map[string]bool{}}
	short, counts := s.shortlist(ctx, rememberedFor)
	if !s.fits(short) { // what is remembered as full may have room again
		short, counts = s.shortlist(ctx, recheckedAfter)
	}
	out := DiscoverOutput{Candidates: short, Counts: counts}
	for _, p := range problems {
		out.Problems = append(out.Problems, p.String())
	}
	slices.Sort(out.Problems)
	if n := len(out.Problems) - choice.MaxCandidates; n > 0 {
		out.Problems = append(out.Problems[:choice.MaxCandidates], fmt.Sprintf("and %d more", n))
	}
	return out, nil
}

// held is how many holds of a provider are the group's.
func held(state fleet.ProviderSnapshot, group string) (n int) {
	for _, key := range state.Holds {
		if _, _, ok := fleet.ParseObjectName(group, key); ok {
			n++
		}
	}
	return n
}

// SelectInput is what Select chooses from.
type SelectInput struct {
	Spec    fleet.InstanceSpec `json:"spec"`
	Found   DiscoverOutput     `json:"found"`
	Refused []string           `json:"refused,omitempty"`
	// View is the driver's, in Selecting: with the choice it becomes the view that the group is told.
	View fleet.View `json:"view"`
}

// SelectOutput is the choice; Offer is nil when nothing fits, and Failure then says why.
type SelectOutput struct {
	Offer    *fleet.Offer    `json:"offer,omitempty"`
	Failure  *fleet.Failure  `json:"failure,omitempty"`
	Decision choice.Decision `json:"decision"`
}

// Select chooses the provider of the next attempt, tells the group and asks the provider for a hold. It is an activity
// so that the scoring may change without breaking the replay of running workflows, and a local one because it is short.
func (a *Activities) Select(ctx context.Context, in SelectInput) (SelectOutput, error) {
	a.showLast(in.View)
	decision := choice.Keep(in.Spec, in.Found.Candidates, in.Refused, a.now())
	out := SelectOutput{Decision: decision}
	for n := range in.Found.Candidates {
		if o := in.Found.Candidates[n].Offer; o.Provider == decision.Chosen {
			out.Offer = &o
		}
	}
	if out.Offer == nil {
		code := fleet.CodeNoOffer
		switch {
		case decision.Full:
			code = fleet.CodeNoCapacity
		case decision.Counts[string(choice.FilterSpending)] > 0:
			code = fleet.CodeSpending
		}
		out.Failure = fleet.NewFailure(code, "", "", nothingFits(in, decision))
		return out, nil
	}
	offered := *out.Offer
	out.Offer.Hourly = choice.Price(in.Spec, offered)
	view := in.View.Chosen(*out.Offer)
	view.Reason = decision.Assessments[0].Reason
	at := fleet.Attempt{Group: in.Spec.ID, Instance: view.Instance, Number: view.Attempt}
	err := a.Report(ctx, ReportInput{
		Group: in.Spec.ID, View: &view, Provider: out.Offer.Provider,
		Holds: []fleet.HoldRequest{acquire(at, in.Spec, &offered)},
	})
	if err == nil {
		a.chosen.add(out.Offer.Provider, at, in.Spec.Shape, a.now())
		a.show(ReasonProviderSelected, at.ObjectName(), "attempt %d of instance %s asks provider %s", at.Number, at.Instance,
			out.Offer.Provider)
	}
	return out, err
}

func nothingFits(in SelectInput, d choice.Decision) string {
	var why []string
	for _, v := range d.Assessments {
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
	return fmt.Sprintf("no provider for group %s: %s", in.Spec.ID, strings.Join(why, "; "))
}
