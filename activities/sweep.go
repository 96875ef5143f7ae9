package activities

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/comparison"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// SweepInput is the sweep before, and when this one began.
type SweepInput struct {
	Last comparison.Sweep `json:"last"`
	At   time.Time        `json:"at"`
}

// sweepAtOnce bounds the providers that one sweep asks at once.
const sweepAtOnce = 20

// Sweep looks on providers for what is ours and has no counterpart here, and removes what comparison.Sweep allows:
// slices itself, and what is left of a peering through the provider's entity, which alone removes peerings. A list
// that fails is a sweep that says nothing.
func (a *Activities) Sweep(ctx context.Context, in SweepInput) (comparison.Sweep, error) {
	sweeper, ok := a.Backend.(backend.Leftovers)
	if !ok {
		return comparison.Sweep{At: in.At}, nil
	}
	of, peers, err := a.hubNow(ctx)
	if err != nil {
		return in.Last, toApplicationError(ctx, "", err)
	}
	of.At = in.At
	asked, next := in.Last.Asks(of.Offers, peers)
	now := in.Last.After(of, asked, next, a.leftovers(ctx, sweeper, asked))
	a.remove(ctx, sweeper, of.Offers, &now, asked)
	return now, nil
}

// remove removes what the sweep allows, on all providers at once.
func (a *Activities) remove(ctx context.Context, sweeper backend.Leftovers, offers []fleet.Offer, now *comparison.Sweep,
	asked []fleet.Provider) {
	bounded, cancel := context.WithTimeout(ctx, observeBound)
	defer cancel()
	var mu sync.Mutex
	done := func(o fleet.Orphan, err error) {
		mu.Lock()
		defer mu.Unlock()
		a.removed(ctx, now, o, err)
	}
	before := comparison.Sweep{Orphans: slices.Clone(now.Orphans)} // what is removed is taken out of now meanwhile
	wait.ForAll(asked, sweepAtOnce, func(_ int, p fleet.Provider) {
		slicesLeft, peering := before.Removable(p.ID)
		for _, o := range slicesLeft {
			done(o, sweeper.RemoveLeftover(bounded, o))
		}
		if peering != nil {
			n := slices.IndexFunc(offers, func(o fleet.Offer) bool { return o.Provider == p.ID })
			request := fleet.HoldRequest{Kind: fleet.HoldLeftover, Offer: &offers[n]}
			done(*peering, a.Messages.Holds(bounded, p.ID, request))
		}
	})
}

// hubNow reads what the sweep is to know of the hub, and the peerings.
func (a *Activities) hubNow(ctx context.Context) (of comparison.Swept, peers []fleet.Provider, err error) {
	if of.Groups, err = a.Entities.Groups(ctx); err != nil {
		return of, nil, fmt.Errorf("read groups: %w", err)
	}
	if of.Providers, err = a.Entities.Providers(ctx); err != nil {
		return of, nil, fmt.Errorf("read providers: %w", err)
	}
	if of.Offers, _, err = a.Catalog.Offers(ctx); err != nil {
		return of, nil, fmt.Errorf("list offers: %w", err)
	}
	if peers, err = a.Backend.Peers(ctx); err != nil {
		return of, nil, fmt.Errorf("list peerings: %w", err)
	}
	if of.Found, err = a.Backend.List(ctx, ""); err != nil {
		return of, nil, fmt.Errorf("list objects: %w", err)
	}
	return of, peers, nil
}

// leftovers asks the providers, all at once; one that does not answer has nothing.
func (a *Activities) leftovers(ctx context.Context, sweeper backend.Leftovers, asked []fleet.Provider) []fleet.Orphan {
	bounded, cancel := context.WithTimeout(ctx, observeBound)
	defer cancel()
	var mu sync.Mutex
	var all []fleet.Orphan
	wait.ForAll(asked, sweepAtOnce, func(_ int, p fleet.Provider) {
		left, err := sweeper.Leftovers(bounded, a.current(bounded, p))
		if err != nil {
			activity.GetLogger(ctx).Info("provider cannot be asked for what is left there", "provider", p.ID, "error",
				shorten.To(err.Error(), maxError))
			return
		}
		mu.Lock()
		defer mu.Unlock()
		all = append(all, left...)
	})
	slices.SortFunc(all, fleet.Orphan.Compare)
	return all
}

// removed says what became of an orphan that was to be removed.
func (a *Activities) removed(ctx context.Context, sweep *comparison.Sweep, o fleet.Orphan, err error) {
	logger := activity.GetLogger(ctx)
	if err != nil {
		logger.Warn("what is left on a provider cannot be removed; the next sweep tries again", "provider",
			o.Attempt.Provider.ID, "what", o.Object, "error", err)
		return
	}
	logger.Info("what was left on a provider is being removed", "provider", o.Attempt.Provider.ID, "what", o.Object)
	a.show(ReasonLeftoverRemoved, "", "provider %s: %s had no counterpart here for ten minutes", o.Attempt.Provider.ID,
		o.Object)
	if !o.OfPeering() { // a peering's entity may be busy: it is told again until nothing is left
		sweep.Forget(o)
	}
}
