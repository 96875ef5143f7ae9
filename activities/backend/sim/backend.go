package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// Options of a Backend; the zero value is ready for use.
type Options struct {
	// Hub tells our objects from those of another hub on the same consumer. Default fleet.DefaultHub.
	Hub string
	// Poll is how often a verb that waits looks whether the world has changed. Default 20ms.
	Poll time.Duration
	// Report is how often Progress is called again while nothing changes. Default 2s.
	Report time.Duration
}

// Backend lends simulated nodes.
type Backend struct {
	world *World
	opts  Options
}

var (
	_ backend.Backend = (*Backend)(nil)
	_ backend.Watcher = (*Backend)(nil)
)

// New makes a backend on the world.
func New(world *World, opts Options) *Backend {
	if opts.Hub == "" {
		opts.Hub = fleet.DefaultHub
	}
	if opts.Poll <= 0 {
		opts.Poll = 20 * time.Millisecond
	}
	if opts.Report <= 0 {
		opts.Report = 2 * time.Second
	}
	return &Backend{world: world, opts: opts}
}

// step moves the world on as far as it goes now and says what it waits for: nil means the verb's end is reached. What it
// changed stays also when it returns an error.
type step func(s *State, now time.Time) (*waiting, error)

// drive repeats the step until its end, its verdict, or the context's end.
func (b *Backend) drive(ctx context.Context, first backend.Stage, progress backend.Progress, do step) error {
	if progress == nil {
		progress = func(backend.Stage, string) {}
	}
	w := &waiting{stage: first, message: "not begun"}
	for {
		if ctx.Err() != nil {
			return &backend.StageError{Stage: w.stage, Message: w.message, Err: contextError(ctx)}
		}
		next, verdict, seen, err := b.try(ctx, do)
		switch {
		case err != nil && ctx.Err() != nil:
			return &backend.StageError{Stage: w.stage, Message: w.message, Err: contextError(ctx)}
		case err != nil:
			return err
		case verdict != nil || next == nil:
			return verdict
		}
		w = next
		progress(w.stage, w.message)
		if err := b.wait(ctx, w, seen, progress); err != nil {
			return err
		}
	}
}

// try runs the step once on the world; seen is the world's head after it.
func (b *Backend) try(ctx context.Context, do step) (next *waiting, verdict error, seen string, err error) {
	seen, err = b.world.edit(ctx, func(s *State) error {
		next, verdict = do(s, time.Now())
		return nil
	})
	return next, verdict, seen, err
}

// wait returns when it is time to look again: w is due, or the world is no longer as seen. It returns early, with nil,
// when the context has ended.
func (b *Backend) wait(ctx context.Context, w *waiting, seen string, progress backend.Progress) error {
	report := time.Now().Add(b.opts.Report)
	for {
		d := b.opts.Poll
		if !w.due.IsZero() {
			if d = time.Until(w.due); d <= 0 {
				return nil
			}
			d = min(d, time.Until(report))
		}
		if !pause(ctx, d) {
			return nil
		}
		if time.Now().After(report) {
			progress(w.stage, w.message)
			report = time.Now().Add(b.opts.Report)
		}
		if w.due.IsZero() {
			head, err := b.world.head()
			if err != nil {
				return fmt.Errorf("wait for %s: %w", w.stage, err)
			}
			if head != seen {
				return nil
			}
		}
	}
}
