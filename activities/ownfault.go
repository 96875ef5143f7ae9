package activities

import (
	"context"
	"runtime/debug"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"golang.org/x/sync/singleflight"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// These are the reasons for which a step's clock is paused. Users see them.
const (
	pausedByAPIServer = "this cluster's API server does not answer"
	pausedByIsolation = "no provider answers this cluster"
)

// faultLasts is the time for which the result of a check is valid for all steps of this worker. hereBound limits the
// check of this cluster's API server, and othersBound the check of the other providers. Both together are shorter
// than the time between the end of a pass and the timeout of its activity.
const (
	faultLasts  = 2 * time.Second
	hereBound   = 2 * time.Second
	othersBound = 4 * time.Second
)

// ownFaults stores the latest results of this worker's checks for faults of its own cluster. The zero value is ready
// for use.
type ownFaults struct {
	here, isolated fault
}

// fault stores the latest result of the check for one fault. Many steps use the result, and only one step at a time
// runs the check.
type fault struct {
	checks singleflight.Group
	mu     sync.Mutex
	at     time.Time
	is     bool
	since  time.Time // time of the first check in the present series
}

// record saves the result of a check. The caller must have locked mu. A series consists of checks that show the fault
// and follow each other within a minute.
func (f *fault) record(now time.Time, is bool) {
	if !is || !f.is || now.Sub(f.at) > time.Minute {
		f.since = now
	}
	f.at, f.is = now, is
}

// ownFault returns the reason why the provider cannot be blamed for the wait of a step, or "". The reason is that this
// cluster's API server does not answer, or that the provider is silent and no other provider answers either.
func (a *Activities) ownFault(ctx context.Context, provider string, silent bool) string {
	switch {
	case a.own.here.check(ctx, a.now, hereBound, func(ctx context.Context) bool { return a.pingConsumer(ctx) != nil }):
		return pausedByAPIServer
	case silent && a.own.isolated.check(ctx, a.now, othersBound, func(ctx context.Context) bool {
		answers, contacted, err := Witness{a.Backend, a.Catalog, a.Probe}.Answers(ctx, []string{provider})
		return err == nil && contacted && !answers
	}) && !a.own.isolated.longerThan(fleet.IsolatedBound): // after IsolatedBound the providers are blamed
		return pausedByIsolation
	default:
		return ""
	}
}

// pingConsumer sends the cheapest request of the backend to this cluster's API server. A list of many peerings, in
// contrast, would take longer than hereBound.
func (a *Activities) pingConsumer(ctx context.Context) error {
	if b, ok := a.Backend.(backend.Alive); ok {
		return b.Alive(ctx)
	}
	_, err := a.Backend.Peers(ctx, "")
	return err
}

// longerThan reports whether the checks have shown the fault for at least d.
func (f *fault) longerThan(d time.Duration) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at.Sub(f.since) >= d
}

// check reports whether the fault exists. It uses a result that is younger than faultLasts, or runs a new check. It
// returns false when the context ends first.
func (f *fault) check(ctx context.Context, now func() time.Time, bound time.Duration,
	probe func(context.Context) bool) bool {
	f.mu.Lock()
	is, fresh := f.is, now().Sub(f.at) < faultLasts
	f.mu.Unlock()
	if fresh {
		return is
	}
	found := f.checks.DoChan("", func() (any, error) {
		defer func() {
			if cause := recover(); cause != nil { // otherwise this panic would end the worker
				activity.GetLogger(ctx).Error("the check for a fault of this cluster panicked; no fault is assumed", "cause", cause,
					"stack",
					string(debug.Stack()))
			}
		}()
		// Other steps also wait for this check, so it does not end with this step.
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), bound)
		defer cancel()
		is := probe(bounded)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.record(now(), is)
		return is, nil
	})
	select {
	case r := <-found:
		return r.Val == true
	case <-ctx.Done():
		return false
	}
}
