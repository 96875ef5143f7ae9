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

// DiscoverInput describes the instance that needs a provider.
type DiscoverInput struct {
	Instance string             `json:"instance"`
	Spec     fleet.InstanceSpec `json:"spec"`
	Refused  []string           `json:"refused,omitempty"`
	Rank     choice.Rank        `json:"rank"`
	// Taken contains the number of the group's instances on each provider, at the time when the group started this
	// instance.
	Taken map[string]int `json:"taken,omitempty"`
	// Failures lists, by provider, the times at which instances of the group failed before the group started this
	// instance.
	Failures map[string][]time.Time `json:"failures,omitempty"`
}

// DiscoverOutput is the shortlist, with the best candidate first. It has at most choice.MaxCandidates candidates,
// because it enters the workflow history.
type DiscoverOutput struct {
	Candidates []choice.Candidate `json:"candidates,omitempty"`
	// Counts contains the number of offers that each filter excluded. It counts all offers, and not only the
	// candidates of the shortlist.
	Counts map[string]int `json:"counts,omitempty"`
	// Problems names the unusable offers, with the reasons in words.
	Problems []string `json:"problems,omitempty"`
}

// Discover reads all offers from the catalog, subtracts the capacity of existing holds, and returns the shortlist.
// If no offer exists, it returns an empty list and no error: Select reports the failure. It ranks the offers by the
// provider states in this worker's memory, and reads only the first providers of the shortlist again, unless it has
// just read them. So the cost of a scale-out does not depend on the number of offers. It records the first
// candidate, so that no other scale-out of this worker chooses the same capacity. On a provider that it does not
// read, the capacity may already be taken: the provider decides when it receives the request for a hold. Discover
// blocks while the catalog reads its sources. It then blocks for up to four round trips to Temporal, or up to eight
// if the first search finds no provider with free capacity.
func (a *Activities) Discover(ctx context.Context, in DiscoverInput) (DiscoverOutput, error) {
	offers, problems, err := a.Catalog.Offers(ctx)
	if err != nil {
		return DiscoverOutput{}, toApplicationError(ctx, "", fmt.Errorf("list offers: %w", err))
	}
	s := search{a: a, in: in, offers: offers, now: a.now(), read: map[string]bool{}, left: a.chosen.forget(in.Instance)}
	short, counts := s.shortlist(ctx, rememberedFor)
	if !s.fits(short) { // a provider that was full when it was last read may have room again
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

// held counts the holds of a provider that belong to the group.
func held(state fleet.ProviderSnapshot, group string) (n int) {
	for _, key := range state.Holds {
		if _, _, ok := fleet.ParseObjectName(group, key); ok {
			n++
		}
	}
	return n
}

// SelectInput contains the candidates from which Select chooses.
type SelectInput struct {
	Spec    fleet.InstanceSpec `json:"spec"`
	Found   DiscoverOutput     `json:"found"`
	Refused []string           `json:"refused,omitempty"`
	// View is the driver's view (its report about the instance) in phase Selecting. Select adds its choice and sends
	// the view to the group.
	View fleet.View `json:"view"`
}

// SelectOutput is the choice. Offer is nil when no candidate fits; Failure then contains the reason.
type SelectOutput struct {
	Offer    *fleet.Offer    `json:"offer,omitempty"`
	Failure  *fleet.Failure  `json:"failure,omitempty"`
	Decision choice.Decision `json:"decision"`
}

// Select chooses the provider of the next attempt, sends the choice to the group and requests a hold from the provider.
// It is an activity, so that a change of the scoring does not break the replay of running workflows. It is a local
// activity, because it is short.
func (a *Activities) Select(ctx context.Context, in SelectInput) (SelectOutput, error) {
	a.recordLastFailure(in.View)
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
		a.chosen.set(out.Offer.Provider, at, in.Spec.Shape, a.now())
		a.recordEvent(ReasonProviderSelected, at.ObjectName(), "attempt %d of instance %s requests capacity from "+
			"provider %s", at.Number,
			at.Instance, out.Offer.Provider)
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
