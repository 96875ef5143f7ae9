package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

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
// is not an error: Select says so. Blocks for as long as the catalog's sources take.
func (a *Activities) Discover(ctx context.Context, in DiscoverInput) (DiscoverOutput, error) {
	offers, problems, err := a.Catalog.Offers(ctx)
	if err != nil {
		return DiscoverOutput{}, toApplicationError(ctx, "", fmt.Errorf("list offers: %w", err))
	}
	states, err := a.publishedOf(ctx, offers)
	if err != nil {
		return DiscoverOutput{}, toApplicationError(ctx, "", err)
	}
	all, rank := make([]choice.Candidate, 0, len(offers)), in.Rank
	for n, o := range offers {
		own := held(states[n], in.Spec.ID)
		rank.Ahead -= max(0, own-in.Taken[o.Provider])
		c := choice.CandidateOf(o, states[n])
		c.Take(in.Taken[o.Provider]-own, in.Spec.Shape)
		c.Own, c.Failures = max(own, in.Taken[o.Provider]), choice.Weight(in.Failures[o.Provider], a.now())
		all = append(all, c)
	}
	rank.Ahead = max(0, rank.Ahead)
	short, counts := choice.Shortlist(in.Spec, all, in.Refused, rank, a.now())
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

// offersARead is for how many offers one more provider is read at once: with many, and a Temporal that is far away, one
// after the other would take longer than Discover may. With few it costs what Cluster Autoscaler waits for in a burst.
const offersARead = 100

// publishedOf is what the providers of the offers have published.
func (a *Activities) publishedOf(ctx context.Context, offers []fleet.Offer) ([]fleet.ProviderSnapshot, error) {
	states := make([]fleet.ProviderSnapshot, len(offers))
	reading, ctx := errgroup.WithContext(ctx)
	reading.SetLimit(1 + len(offers)/offersARead)
	for n, o := range offers {
		reading.Go(func() (err error) {
			states[n], err = a.published(ctx, o.Provider)
			return err
		})
	}
	return states, reading.Wait()
}

// published is what a provider has published; zero when it does not run.
func (a *Activities) published(ctx context.Context, provider string) (fleet.ProviderSnapshot, error) {
	state, err := a.Entities.Provider(ctx, provider)
	if err != nil && !errors.Is(err, fleet.ErrUnavailable) {
		return state, fmt.Errorf("read holds of provider %s: %w", provider, err)
	}
	return state, nil
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
