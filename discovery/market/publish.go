package market

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/told"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// Times of a Publisher. Each is more than a second, so there is at most one write a second.
const (
	lookEvery  = 3 * time.Second
	writeEvery = time.Minute // also without a difference, so that readers know it is kept
	lookFor    = 10 * time.Second
	// readAtOnce is how many providers are read at once, so that a Temporal that is far away answers for many in lookFor.
	readAtOnce = 16
)

// Entities is what a Publisher must know of the holds: a provider read anew, or as it was last read, and how long ago.
type Entities interface {
	Provider(ctx context.Context, id string) (fleet.ProviderSnapshot, error)
	Remembered(id string) (fleet.ProviderSnapshot, time.Duration)
}

// Observed is what the observer has last read.
type Observed interface {
	// Active reports whether a provider has holds, or something of ours, or was chosen a moment ago; known is false before
	// the first round.
	Active(provider string) (active, known bool)
	// Specs are those of the node groups.
	Specs() []fleet.GroupSpec
}

// Publisher writes the market of one hub. Only one may run at a time: it runs in the process that leads the hub.
type Publisher struct {
	Catalog  discovery.Catalog
	Entities Entities
	Observed Observed
	Store    Store
	Logger   *slog.Logger
	// Findings returns what is published with the offers. A nil Findings publishes nothing of it.
	Findings func() Findings
}

// Run publishes until ctx ends. What fails is logged and tried again.
func (p Publisher) Run(ctx context.Context) {
	var last Market
	var told told.Once
	for ok := true; ok; ok = wait.For(ctx, lookEvery) {
		next, err := p.publish(ctx, last)
		if ctx.Err() != nil {
			return
		}
		if told.IsNew(err) {
			p.Logger.Warn("the market cannot be published", "error", err)
		}
		last = next
	}
}

// publish writes the market if it differs from the last one written, or that is old, and returns the last one written.
func (p Publisher) publish(ctx context.Context, last Market) (Market, error) {
	ctx, cancel := context.WithTimeout(ctx, lookFor)
	defer cancel()
	if _, known := p.Observed.Active(""); !known { // what holds have taken would be offered once more
		return last, nil
	}
	now, err := p.look(ctx)
	if err != nil {
		return last, err
	}
	if !last.At.IsZero() && now.At.Sub(last.At) < writeEvery {
		if semantic.DeepEqual(last.Offers, now.Offers) && reflect.DeepEqual(last.Findings, now.Findings) &&
			slices.Equal(last.Groups, now.Groups) {
			return last, nil
		}
		if !differ(last, now, p.Observed.Specs()) {
			return last, nil
		}
	}
	if err := p.Store.Save(ctx, now); err != nil {
		return last, fmt.Errorf("write the market: %w", err)
	}
	return now, nil
}

// look reads the offers, and the holds of the providers that have any. Of the others what was last read counts: the
// observer reads them in turn.
func (p Publisher) look(ctx context.Context) (Market, error) {
	found, _, err := p.Catalog.Offers(ctx)
	if err != nil {
		return Market{}, fmt.Errorf("list offers: %w", err)
	}
	offers := make([]Offer, len(found))
	reading, each := errgroup.WithContext(ctx)
	reading.SetLimit(readAtOnce)
	for n, o := range found {
		reading.Go(func() error {
			state, _ := p.Entities.Remembered(o.Provider)
			if active, _ := p.Observed.Active(o.Provider); active || len(state.Holds)+len(state.Standby) > 0 {
				now, err := p.Entities.Provider(each, o.Provider)
				switch {
				case err == nil, errors.Is(err, fleet.ErrNotRunning):
					state = now
				case fleet.IsRefused(err, fleet.RefusedNotInitialised): // it has just begun: what was last read counts
				default:
					return fmt.Errorf("read holds of provider %s: %w", o.Provider, err)
				}
			}
			offers[n] = offerOf(o, state)
			return nil
		})
	}
	if err := reading.Wait(); err != nil {
		return Market{}, err
	}
	m, err := newMarket(offers, p.Observed.Specs(), time.Now())
	for _, g := range p.Observed.Specs() {
		m.Groups = append(m.Groups, g.ID)
	}
	slices.Sort(m.Groups)
	if err == nil && p.Findings != nil {
		m.Findings = p.Findings().cut()
	}
	return m, err
}
