package sim

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// Options contains the settings of New. The zero value is ready for use.
type Options struct {
	// Hub distinguishes our objects from the objects of another hub on the same consumer. Default fleet.DefaultHub.
	Hub string
	// Poll is the interval at which waiting calls read changes of the world. All calls on one World share each read of
	// the file. Default 20ms.
	Poll time.Duration
	// Report is the interval at which a waiting call calls Progress again while nothing changes. Default 2s.
	Report time.Duration
	// RefusedFor is the time for which this backend does not use a provider after the provider has removed our
	// Tenant. Default 30m.
	RefusedFor time.Duration
}

// Backend implements backend.Backend with simulated nodes in a World.
type Backend struct {
	world *World
	opts  Options
}

var (
	_ backend.Backend   = (*Backend)(nil)
	_ backend.Leftovers = (*Backend)(nil)
)

// New makes a backend on the world.
func New(world *World, opts Options) *Backend {
	opts.Hub = cmp.Or(opts.Hub, fleet.DefaultHub)
	opts.Poll = cmp.Or(opts.Poll, 20*time.Millisecond)
	opts.Report = cmp.Or(opts.Report, 2*time.Second)
	opts.RefusedFor = cmp.Or(opts.RefusedFor, 30*time.Minute)
	return &Backend{world: world, opts: opts}
}

// step advances the verb as far as is possible now, and returns the reason for the remaining wait. It returns nil
// when the verb is complete. Its changes of the world stay even when it returns an error.
type step func(s *State, now time.Time) (*waiting, error)

// drive repeats the step until the verb is complete, the step returns an error, or the context ends. The step may
// change only the objects with the given keys.
func (b *Backend) drive(
	ctx context.Context, keys func(*State) []string, first backend.Stage, progress backend.Progress, do step,
) error {
	w := &waiting{stage: first, message: "not begun"}
	for {
		if ctx.Err() != nil {
			return &backend.StageError{Stage: w.stage, Message: w.message, Err: wait.Err(ctx)}
		}
		var next *waiting
		var stepErr error
		var touched []string
		seen, err := b.world.edit(ctx, keys, func(s *State) error {
			next, stepErr = do(s, time.Now())
			touched = keys(s)
			return nil
		})
		switch {
		case err != nil && ctx.Err() != nil:
			return &backend.StageError{Stage: w.stage, Message: w.message, Err: wait.Err(ctx)}
		case err != nil:
			return err
		case stepErr != nil || next == nil:
			return stepErr
		}
		w = next
		progress.Report(w.stage, w.message)
		if err := b.wait(ctx, w, seen, append(touched, w.on), progress); err != nil {
			return err
		}
	}
}

// wait waits until the step should run again. If w has a due time, the step runs again at this time. Otherwise it
// runs again when one of the objects with the keys has changed after the version seen. When the context ends first,
// wait returns nil.
func (b *Backend) wait(ctx context.Context, w *waiting, seen int64, keys []string, progress backend.Progress) error {
	report := time.NewTicker(b.opts.Report)
	defer report.Stop()
	var due <-chan time.Time
	if !w.due.IsZero() {
		timer := time.NewTimer(time.Until(w.due))
		defer timer.Stop()
		due = timer.C
	}
	for {
		var woken <-chan struct{}
		if due == nil {
			now, yes, news, err := b.world.changed(seen, keys, b.opts.Poll)
			if err != nil {
				return fmt.Errorf("wait for %s: %w", w.stage, err)
			}
			if yes {
				return nil
			}
			seen, woken = now, news
		}
		select {
		case <-ctx.Done():
			return nil
		case <-due:
			return nil
		case <-woken:
		case <-report.C:
			progress.Report(w.stage, w.message)
		}
	}
}
