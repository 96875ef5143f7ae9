package observer

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/comparison"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// concurrentSweeps bounds the number of providers that one sweep queries concurrently.
const concurrentSweeps = 20

// sweep searches the providers for leftovers when a sweep is due. Leftovers are objects of ours that have no
// counterpart on this cluster. sweep removes the leftovers for which comparison.Sweep permits this. It deletes slices
// itself. It requests the removal of the rest of a peering from the provider's entity, because only the entity
// removes peerings. It does not query a provider whose entity could not be read. The first sweep runs a full interval
// after the first round, so that the groups can adopt existing objects before it.
func (o *Observer) sweep(ctx context.Context, last comparison.Sweep, now time.Time, b *booked, w world,
	offers []fleet.Offer) comparison.Sweep {
	sweeper, ok := o.Backend.(backend.Leftovers)
	if last.At.IsZero() {
		last.At = now
	}
	if !ok || now.Sub(last.At) < comparison.SweepEvery || len(offers) == 0 {
		return last
	}
	queried, next := last.Asks(offers, w.peers)
	o.readQueried(ctx, b, queried)
	queried = slices.DeleteFunc(queried, func(p fleet.Provider) bool { return b.unreadProvider(p.ID) })
	of := comparison.Swept{At: now, Groups: b.groups, Providers: b.providers, Found: w.found, Offers: offers}
	swept := last.After(of, queried, next, o.leftovers(ctx, sweeper, queried, offers))
	o.remove(ctx, sweeper, offers, &swept, queried)
	return swept
}

// readQueried reads the entities of the queried providers, except entities that the round has already read.
func (o *Observer) readQueried(ctx context.Context, b *booked, queried []fleet.Provider) {
	var names []string
	for _, p := range queried {
		if !b.sawProvider(p.ID) && !b.unreadProvider(p.ID) && !b.absent[providerID(p.ID)] {
			names = append(names, p.ID)
		}
	}
	b.providers = append(b.providers, readEach(ctx, b, names, providerID, o.Entities.Status)...)
}

// leftovers queries the providers concurrently, and returns their leftovers. It logs the error of a provider that does
// not answer.
func (o *Observer) leftovers(ctx context.Context, sweeper backend.Leftovers, queried []fleet.Provider,
	offers []fleet.Offer) []fleet.Orphan {
	bounded, cancel := context.WithTimeout(ctx, checkBound)
	defer cancel()
	var mu sync.Mutex
	var all []fleet.Orphan
	wait.ForAll(queried, concurrentSweeps, func(_ int, p fleet.Provider) {
		left, err := sweeper.Leftovers(bounded, withOffer(p, offers))
		if err != nil {
			o.Logger.Info("cannot list the leftovers on a provider", "provider", p.ID, "error",
				shorten.Words(err.Error(), maxMessage))
			return
		}
		mu.Lock()
		defer mu.Unlock()
		all = append(all, left...)
	})
	slices.SortFunc(all, fleet.Orphan.Compare)
	return all
}

// remove removes the leftovers for which the sweep permits this, on all providers concurrently.
func (o *Observer) remove(ctx context.Context, sweeper backend.Leftovers, offers []fleet.Offer,
	now *comparison.Sweep, queried []fleet.Provider) {
	bounded, cancel := context.WithTimeout(ctx, checkBound)
	defer cancel()
	var mu sync.Mutex
	done := func(left fleet.Orphan, err error) {
		mu.Lock()
		defer mu.Unlock()
		o.removed(now, left, err)
	}
	before := comparison.Sweep{Orphans: slices.Clone(now.Orphans)} // removed concurrently deletes leftovers from now
	wait.ForAll(queried, concurrentSweeps, func(_ int, p fleet.Provider) {
		slicesLeft, peering := before.Removable(p.ID)
		for _, left := range slicesLeft {
			done(left, sweeper.RemoveLeftover(bounded, left))
		}
		if peering != nil {
			n := slices.IndexFunc(offers, func(offer fleet.Offer) bool { return offer.Provider == p.ID })
			request := fleet.HoldRequest{Kind: fleet.HoldLeftover, Offer: &offers[n]}
			done(*peering, o.Messages.Holds(bounded, p.ID, request))
		}
	})
}

// removed logs the outcome of the removal of one leftover, records an Event, and updates the sweep.
func (o *Observer) removed(sweep *comparison.Sweep, left fleet.Orphan, err error) {
	provider := left.Attempt.Provider.ID
	if err != nil {
		o.Logger.Warn("cannot remove a leftover on a provider; the next sweep tries again", "provider", provider,
			"object", left.Object, "error", err)
		return
	}
	o.Logger.Info("removing a leftover on a provider", "provider", provider, "object", left.Object)
	if o.Events != nil {
		text := shorten.Words("provider "+provider+": "+left.Object+" had no counterpart here for ten minutes", maxMessage)
		o.Events.Record(activities.Event{Reason: activities.ReasonLeftoverRemoved, Message: text})
	}
	if !left.OfPeering() { // a busy entity drops the request, so each sweep repeats it until the peering is gone
		sweep.Forget(left)
	}
}
