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

// Why a step's clock stands, for people.
const (
	standsHere     = "this cluster's API server does not answer"
	standsIsolated = "no provider answers this cluster"
)

// How long an answer holds for all steps of this worker, and how long finding it may take: together less than what a
// pass has left.
const (
	faultLasts  = 2 * time.Second
	hereBound   = 2 * time.Second
	othersBound = 4 * time.Second
)

// ownFaults are what this worker has last found out about faults of its own cluster. The zero value is ready for use.
type ownFaults struct {
	here, isolated fault
}

// fault is one that many steps ask about, and one of them looks for.
type fault struct {
	asking singleflight.Group
	mu     sync.Mutex
	at     time.Time
	is     bool
	since  time.Time // the first of the looks in a row that have shown it
}

// note takes what a look has shown, with the lock. Looks with a minute between them are not in a row.
func (f *fault) note(now time.Time, is bool) {
	if !is || !f.is || now.Sub(f.at) > time.Minute {
		f.since = now
	}
	f.at, f.is = now, is
}

// ownFault is why no provider is to blame for what a step waits for: this cluster's API server does not answer, or, of
// a provider that is silent, nobody else answers either. "" when neither.
func (a *Activities) ownFault(ctx context.Context, provider string, silent bool) string {
	switch {
	case a.own.here.ask(ctx, a.now, hereBound, func(ctx context.Context) bool { return a.hereAnswers(ctx) != nil }):
		return standsHere
	case silent && a.own.isolated.ask(ctx, a.now, othersBound, func(ctx context.Context) bool {
		answers, others, err := Witness{a.Backend, a.Catalog, a.Probe}.Answers(ctx, []string{provider})
		return err == nil && others && !answers
	}) && !a.own.isolated.longerThan(fleet.IsolatedBound): // then providers are given up, as their nodes are
		return standsIsolated
	default:
		return ""
	}
}

// hereAnswers asks this cluster's API server, by as little as the backend can: to list all peerings takes longer than
// hereBound where there are many.
func (a *Activities) hereAnswers(ctx context.Context) error {
	if b, ok := a.Backend.(backend.Alive); ok {
		return b.Alive(ctx)
	}
	_, err := a.Backend.Peers(ctx)
	return err
}

// longerThan reports whether looks have shown the fault for longer than that.
func (f *fault) longerThan(d time.Duration) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at.Sub(f.since) >= d
}

// ask reports whether the fault is there, by a look of the last seconds or by one of its own; false when the context
// ends first.
func (f *fault) ask(ctx context.Context, now func() time.Time, bound time.Duration,
	look func(context.Context) bool) bool {
	f.mu.Lock()
	is, fresh := f.is, now().Sub(f.at) < faultLasts
	f.mu.Unlock()
	if fresh {
		return is
	}
	found := f.asking.DoChan("", func() (any, error) {
		defer func() {
			if cause := recover(); cause != nil { // it would end the worker: this runs in nobody's activity
				activity.GetLogger(ctx).Error("the look for a fault of our own panics; none is assumed", "cause", cause, "stack",
					string(debug.Stack()))
			}
		}()
		// Others wait for it too, so it does not end with this step.
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), bound)
		defer cancel()
		is := look(bounded)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.note(now(), is)
		return is, nil
	})
	select {
	case r := <-found:
		return r.Val == true
	case <-ctx.Done():
		return false
	}
}
