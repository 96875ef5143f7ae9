package agent

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// Sink is the place where the agent publishes its offers.
type Sink interface {
	// Restart resets the sink. When an agent has become the leader, it calls Restart before its first Put.
	Restart()
	// Put publishes or renews the offer. The offer expires after ttl. Put blocks for a bounded time.
	Put(ctx context.Context, offer api.Posted, ttl time.Duration) error
	// Withdraw removes the offer. It succeeds if the offer is unknown, and blocks for a bounded time.
	Withdraw(ctx context.Context, name string) error
}

// These constants are the intervals and time limits of an Advertiser.
const (
	writeEvery = time.Second      // the shortest time between two rounds of writes
	retryEvery = 10 * time.Second // the longest time between two attempts while writes fail
	endWithin  = 5 * time.Second  // the time to withdraw all offers
)

// Advertiser calls Offers, publishes the returned offers to the Sink, and renews them.
type Advertiser struct {
	Sink Sink
	// Offers returns the present offers, and the time after which they expire.
	Offers func() ([]api.Posted, time.Duration)
	// Changed delivers a value when the result of Offers may have changed.
	Changed <-chan struct{}
	Log     *slog.Logger
	Metrics *Metrics

	offered map[string]api.Posted // the published offers by name; the zero value while the result of a write is unknown

	mu      sync.Mutex
	lastErr error
}

// Err returns the error of the last round of writes. It returns nil if this round succeeded, and before the first
// round.
func (a *Advertiser) Err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.lastErr
}

// Run publishes the offers until ctx ends, and then withdraws all offers. It writes changed offers at most once a
// second. It renews each offer about three times within the offer's TTL.
func (a *Advertiser) Run(ctx context.Context) {
	a.offered = map[string]api.Posted{}
	a.Sink.Restart()
	var renew time.Time
	failures := 0
	for ctx.Err() == nil {
		due := !time.Now().Before(renew)
		ttl, err := a.advertise(ctx, due)
		if ctx.Err() != nil {
			break
		}
		a.recordResult(err)
		switch {
		case err != nil:
			failures++
		case due:
			renew, failures = time.Now().Add(jitter(ttl/3)), 0
		default:
			failures = 0
		}
		a.waitForChange(ctx, failures, renew)
	}
	a.withdraw(ctx)
}

// waitForChange waits for writeEvery, and then until the offers change or must be renewed. After failed writes it
// only waits, for up to retryEvery, even if the offers change.
func (a *Advertiser) waitForChange(ctx context.Context, failures int, renew time.Time) {
	if failures > 0 {
		wait.For(ctx, jitter(min(writeEvery<<min(failures, 10), retryEvery)))
		return
	}
	if !wait.For(ctx, writeEvery) {
		return
	}
	next := time.NewTimer(time.Until(renew))
	defer next.Stop()
	select {
	case <-a.Changed:
	case <-next.C:
	case <-ctx.Done():
	}
}

// advertise writes the changed offers, and withdraws offers that no longer exist. If the parameter `all` is true, it
// writes all offers. It ends early if a write has failed and 30 seconds have passed, because the measured amounts are
// outdated by then. It does not end early if all writes succeed, even if they are slow.
func (a *Advertiser) advertise(ctx context.Context, all bool) (time.Duration, error) {
	began := time.Now()
	offers, ttl := a.Offers()
	var failed []error
	hangs := func() bool { return time.Since(began) >= 3*retryEvery && errors.Join(failed...) != nil }
	listed := map[string]bool{}
	for _, offer := range offers {
		listed[offer.Name] = true
		if same := equality.Semantic.DeepEqual(a.offered[offer.Name], offer); (!same || all) && !hangs() {
			failed = append(failed, a.put(ctx, offer, ttl, !same))
		}
	}
	for name := range a.offered {
		if !listed[name] && !hangs() {
			failed = append(failed, a.take(ctx, name))
		}
	}
	return ttl, errors.Join(failed...)
}

func (a *Advertiser) put(ctx context.Context, offer api.Posted, ttl time.Duration, isNew bool) error {
	a.offered[offer.Name] = api.Posted{} // the state is unknown until the write has returned
	if err := a.Sink.Put(ctx, offer, ttl); err != nil {
		a.Metrics.wrote(failed)
		return err
	}
	a.offered[offer.Name] = offer
	a.Metrics.wrote(put)
	if isNew {
		a.Log.Info("offer published", "offer", offer.Name, "lendable", renderAmounts(offer.Lendable))
	}
	return nil
}

func (a *Advertiser) take(ctx context.Context, name string) error {
	if err := a.Sink.Withdraw(ctx, name); err != nil {
		a.Metrics.wrote(failed)
		return err
	}
	delete(a.offered, name)
	a.Metrics.wrote(withdrawn)
	a.Log.Info("offer withdrawn", "offer", name)
	return nil
}

// withdraw removes all offers, even if ctx has ended.
func (a *Advertiser) withdraw(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWithin)
	defer cancel()
	for name := range a.offered {
		if err := a.take(ctx, name); err != nil {
			a.Log.Warn("offer cannot be withdrawn; it will expire", "offer", name, "error", err)
		}
	}
}

// recordResult stores the result of a round of writes for Err. It logs an error if its text differs from the text of
// the last error. It also logs the first success after errors.
func (a *Advertiser) recordResult(err error) {
	a.mu.Lock()
	was := a.lastErr
	a.lastErr = err
	a.mu.Unlock()
	switch {
	case err != nil && (was == nil || was.Error() != err.Error()):
		a.Log.Warn("offers cannot be published; they will expire if this continues", "error", err)
	case err == nil && was != nil:
		a.Log.Info("offers are published again")
	}
}

// jitter shortens d by a random part of up to a quarter. Without it, agents that start at the same time would renew
// their offers at the same time.
func jitter(d time.Duration) time.Duration { return d - rand.N(d/4+1) }

// renderAmounts returns the amounts as a text such as "cpu=4, memory=8Gi", sorted by name.
func renderAmounts(amounts corev1.ResourceList) string {
	var parts []string
	for name, amount := range amounts {
		parts = append(parts, string(name)+"="+amount.String())
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}
