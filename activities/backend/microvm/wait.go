package microvm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// firstPause and longestPause are the first and the longest interval between two polls of a stage. A request that the
// context's end interrupts counts as unanswered only if it has run for at least noAnswer.
const (
	firstPause   = 50 * time.Millisecond
	longestPause = 750 * time.Millisecond
	noAnswer     = time.Second
)

// waiter waits for the stages of one verb. The field patience is the time for which a host may be silent. If it is 0,
// only the end of the context or backend.ErrInUse ends the wait early.
type waiter struct {
	progress backend.Progress
	patience time.Duration
}

// errCredentials is the error of a host that does not accept our token.
var errCredentials = fmt.Errorf("%w: %w", backend.ErrDenied, backend.ErrCredentials)

func errorf(kind error, format string, args ...any) error {
	return backend.Errorf(kind, format, args...)
}

// outcome is the result of the last poll that the context's end did not interrupt.
type outcome struct {
	message string
	err     error
	silent  time.Time // time since which the host has not answered; zero while it answers
}

func (s *outcome) record(polledAt time.Time, message string, err error) {
	s.message, s.err = message, err
	if err != nil {
		s.message, s.err = backend.SplitError(err)
	}
	if !errors.Is(err, backend.ErrUnreachable) {
		s.silent = time.Time{}
	} else if s.silent.IsZero() {
		s.silent = polledAt
	}
}

// until polls until the stage is reached, and then returns nil. It returns a *backend.StageError when an error is final
// or the context ends.
func (w waiter) until(ctx context.Context, stage backend.Stage, check backend.Poll) error {
	seen := outcome{message: "looking"}
	for delay := firstPause; ; delay = min(delay*3/2, longestPause) {
		w.progress.Report(stage, seen.message)
		if ctx.Err() != nil {
			return backend.Stopped(ctx, stage, seen.message, seen.err)
		}
		polledAt := time.Now()
		reached, message, err := check.Run(ctx, w.progress, stage, seen.message)
		if reached {
			return nil
		}
		if ctx.Err() != nil && (!errors.Is(err, backend.ErrUnreachable) || time.Since(polledAt) < noAnswer) {
			return backend.Stopped(ctx, stage, seen.message, seen.err)
		}
		seen.record(polledAt, message, err)
		if w.final(seen) {
			return &backend.StageError{Stage: stage, Message: seen.message, Err: seen.err}
		}
		if !wait.For(ctx, delay) {
			return backend.Stopped(ctx, stage, seen.message, seen.err)
		}
	}
}

// final reports whether the wait must end: longer waiting cannot help, or the host has been silent for too long.
func (w waiter) final(seen outcome) bool {
	if w.patience <= 0 {
		return errors.Is(seen.err, backend.ErrInUse)
	}
	return backend.IsFinal(seen.err) || !seen.silent.IsZero() && time.Since(seen.silent) > w.patience
}
