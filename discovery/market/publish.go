package market

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/logonce"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// These constants are the intervals and time limits of a Publisher.
const (
	publishEvery   = 3 * time.Second
	writeEvery     = time.Minute // even if nothing has changed, so that readers know that the market is current
	publishTimeout = 10 * time.Second
	// maxReads bounds the number of providers that one publication reads, and readAtOnce the number that it reads
	// concurrently. So the reads end within publishTimeout even if Temporal is far away, and their number a minute is
	// bounded. With 1,000 active providers, ten publications read each provider once.
	maxReads   = 100
	readAtOnce = 16
)

// Entities reads the holds of providers from the providers' workflows. Provider makes a new read. Remembered returns
// the result of the last read and the age of this result.
type Entities interface {
	Provider(ctx context.Context, id string) (fleet.ProviderSnapshot, error)
	Remembered(id string) (fleet.ProviderSnapshot, time.Duration)
}

// Observed returns the results of the observer's last round.
type Observed interface {
	// Active reports whether a provider has holds or objects of this hub, or was chosen a moment ago. The result
	// `known` is false before the observer's first round.
	Active(provider string) (active, known bool)
	// Specs returns the specs of the node groups.
	Specs() []fleet.GroupSpec
}

// Publisher writes the market of one hub. Only one Publisher of a hub may run at a time. Therefore it runs in the
// worker that holds the hub's Lease.
type Publisher struct {
	Catalog  discovery.Catalog
	Entities Entities
	Observed Observed
	Store    Store
	Logger   *slog.Logger
	// Findings returns the findings to publish with the offers. nil means no findings.
	Findings func() Findings

	read map[string]time.Time // the time of the last read of each active provider, also of a read without a result
}

// Run publishes until ctx ends. It logs failures and retries.
func (p Publisher) Run(ctx context.Context) {
	var last Market
	var logged logonce.LastError
	p.read = map[string]time.Time{}
	for ok := true; ok; ok = wait.For(ctx, publishEvery) {
		next, err := p.publish(ctx, last)
		if ctx.Err() != nil {
			return
		}
		if logged.IsNew(err) {
			p.Logger.Warn("the market cannot be published", "error", err)
		}
		last = next
	}
}

// publish writes the market if it has changed, or if the last write was more than writeEvery ago. The parameter
// `last` is the market that was written last. The result is the market that is now written last.
func (p Publisher) publish(ctx context.Context, last Market) (Market, error) {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	if _, known := p.Observed.Active(""); !known { // without the holds, capacity in use would appear as free
		return last, nil
	}
	now, err := p.readMarket(ctx)
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

// readMarket reads the offers, and the present holds of providers that are active (Observed.Active) or had holds at
// their last read. Of more than maxReads such providers it reads those with the oldest reads. For any other provider it
// uses the last read of this process: the observer reads active providers in each round, and inactive providers one
// after another.
func (p Publisher) readMarket(ctx context.Context) (Market, error) {
	found, _, err := p.Catalog.Offers(ctx)
	if err != nil {
		return Market{}, fmt.Errorf("list offers: %w", err)
	}
	if err := p.readHolds(ctx, found); err != nil {
		return Market{}, err
	}
	offers := make([]Offer, len(found))
	for n, o := range found {
		state, _ := p.Entities.Remembered(o.Provider)
		offers[n] = offerOf(o, state)
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

// readHolds reads active providers, so that Entities remembers their present holds.
func (p Publisher) readHolds(ctx context.Context, offers []fleet.Offer) error {
	now, last := time.Now(), map[string]time.Time{} // the times of the last reads
	for _, o := range offers {
		state, age := p.Entities.Remembered(o.Provider)
		if active, _ := p.Observed.Active(o.Provider); active || len(state.Holds)+len(state.Standby) > 0 {
			last[o.Provider] = now.Add(-age)
			if asked := p.read[o.Provider]; asked.After(last[o.Provider]) {
				last[o.Provider] = asked
			}
		}
	}
	maps.DeleteFunc(p.read, func(id string, _ time.Time) bool { return last[id].IsZero() })
	oldest := slices.SortedFunc(maps.Keys(last), func(a, b string) int { return last[a].Compare(last[b]) })
	reading, each := errgroup.WithContext(ctx)
	reading.SetLimit(readAtOnce)
	for _, id := range oldest[:min(maxReads, len(oldest))] {
		p.read[id] = now
		reading.Go(func() error {
			_, err := p.Entities.Provider(each, id)
			// A provider whose workflow has just started publishes no holds yet.
			if err == nil || errors.Is(err, fleet.ErrNotRunning) || fleet.IsRefused(err, fleet.RefusedNotInitialised) {
				return nil
			}
			return fmt.Errorf("read holds of provider %s: %w", id, err)
		})
	}
	return reading.Wait()
}
