package microvm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// How often a stage is looked at: often at first, then seldom; and how long a request has to be pending for its end by
// the context to mean that nobody answers it.
const (
	firstLook  = 50 * time.Millisecond
	seldomLook = 750 * time.Millisecond
	noAnswer   = time.Second
)

// waiter is how one verb waits. patience is how long a host may be silent; 0 means until the context ends, and that
// nothing else but backend.ErrInUse ends the wait either.
type waiter struct {
	progress backend.Progress
	patience time.Duration
}

// errCredentials is a host's no to our token.
var errCredentials = fmt.Errorf("%w: %w", backend.ErrDenied, backend.ErrCredentials)

func say(kind error, format string, args ...any) error { return backend.Errorf(kind, format, args...) }

// outcome is that of the last look that the context's end did not spoil.
type outcome struct {
	message string
	err     error
	silent  time.Time // since when the host has not answered; zero while it does
}

func (s *outcome) take(asked time.Time, message string, err error) {
	s.message, s.err = message, err
	if err != nil {
		s.message, s.err = backend.SplitError(err)
	}
	if !errors.Is(err, backend.ErrUnreachable) {
		s.silent = time.Time{}
	} else if s.silent.IsZero() {
		s.silent = asked
	}
}

// until looks until the stage is reached, an error is final, or the context ends; its error is a *backend.StageError.
func (w waiter) until(ctx context.Context, stage backend.Stage, look backend.Poll) error {
	seen := outcome{message: "looking"}
	for delay := firstLook; ; delay = min(delay*3/2, seldomLook) {
		w.progress.Report(stage, seen.message)
		if ctx.Err() != nil {
			return backend.Stopped(ctx, stage, seen.message, seen.err)
		}
		asked := time.Now()
		reached, message, err := look.Take(ctx, w.progress, stage, seen.message)
		if reached {
			return nil
		}
		if ctx.Err() != nil && (!errors.Is(err, backend.ErrUnreachable) || time.Since(asked) < noAnswer) {
			return backend.Stopped(ctx, stage, seen.message, seen.err)
		}
		seen.take(asked, message, err)
		if w.final(seen) {
			return &backend.StageError{Stage: stage, Message: seen.message, Err: seen.err}
		}
		if !wait.For(ctx, delay) {
			return backend.Stopped(ctx, stage, seen.message, seen.err)
		}
	}
}

// final reports whether waiting longer cannot help, or has lasted too long.
func (w waiter) final(seen outcome) bool {
	if w.patience <= 0 {
		return errors.Is(seen.err, backend.ErrInUse)
	}
	return backend.IsFinal(seen.err) || !seen.silent.IsZero() && time.Since(seen.silent) > w.patience
}
