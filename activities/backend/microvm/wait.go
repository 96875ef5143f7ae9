package microvm

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// How often a stage is looked at: often at first, then seldom; and how long a request has to be pending for its end by
// the context to mean that nobody answers it.
const (
	firstLook  = 50 * time.Millisecond
	seldomLook = 750 * time.Millisecond
	noAnswer   = time.Second
)

// look takes the next step towards a stage and reports whether it is reached; if not, message says what it waits for.
type look func(ctx context.Context) (reached bool, message string, err error)

// waiter is how one verb waits. patience is how long a host may be silent; 0 means until the context ends, and that
// nothing else but backend.ErrInUse ends the wait either.
type waiter struct {
	progress backend.Progress
	patience time.Duration
}

// errCredentials is a host's no to our token.
var errCredentials = fmt.Errorf("%w: %w", backend.ErrDenied, backend.ErrCredentials)

// verdict is an error of one of the port's kinds.
type verdict struct {
	kind    error
	message string
}

func (v *verdict) Error() string { return v.message + ": " + v.kind.Error() }
func (v *verdict) Unwrap() error { return v.kind }

func say(kind error, format string, args ...any) error {
	return &verdict{kind, shorten.To(fmt.Sprintf(format, args...), maxWords)}
}

// outcome is that of the last look that the context's end did not spoil.
type outcome struct {
	message string
	err     error
	silent  time.Time // since when the host has not answered; zero while it does
}

func (s *outcome) take(asked time.Time, message string, err error) {
	s.message, s.err = message, err
	if v := (*verdict)(nil); errors.As(err, &v) {
		s.message, s.err = v.message, v.kind
	} else if err != nil {
		s.message = shorten.To(err.Error(), maxWords)
	}
	if !errors.Is(err, backend.ErrUnreachable) {
		s.silent = time.Time{}
	} else if s.silent.IsZero() {
		s.silent = asked
	}
}

// until looks until the stage is reached, an error is final, or the context ends; its error is a *backend.StageError.
func (w waiter) until(ctx context.Context, stage backend.Stage, look look) error {
	seen := outcome{message: "looking"}
	for delay := firstLook; ; delay = min(delay*3/2, seldomLook) {
		w.tell(stage, seen.message)
		if ctx.Err() != nil {
			return seen.stopped(ctx, stage)
		}
		asked := time.Now()
		reached, message, err := w.during(ctx, stage, seen.message, look)
		if reached && err == nil {
			return nil
		}
		if ctx.Err() != nil && (!errors.Is(err, backend.ErrUnreachable) || time.Since(asked) < noAnswer) {
			return seen.stopped(ctx, stage)
		}
		seen.take(asked, message, err)
		if w.final(seen) {
			return &backend.StageError{Stage: stage, Message: seen.message, Err: seen.err}
		}
		if !wait.For(ctx, delay) {
			return seen.stopped(ctx, stage)
		}
	}
}

// during takes the look in a goroutine of its own, so that progress is told while a request hangs.
func (w waiter) during(ctx context.Context, stage backend.Stage, before string, look look) (reached bool,
	message string, err error) {
	done, fault := make(chan struct{}), ""
	go func() {
		defer close(done)
		defer func() {
			if cause := recover(); cause != nil {
				fault = fmt.Sprintf("look for %s: %v\n%s", stage, cause, debug.Stack())
			}
		}()
		reached, message, err = look(ctx)
	}()
	ticks := time.NewTicker(time.Second)
	defer ticks.Stop()
	for {
		select {
		case <-done:
			if fault != "" {
				panic(fault)
			}
			return reached, message, err
		case <-ticks.C:
			w.tell(stage, before)
		}
	}
}

func (w waiter) tell(stage backend.Stage, message string) {
	if w.progress != nil {
		w.progress(stage, message)
	}
}

// final reports whether waiting longer cannot help, or has lasted too long.
func (w waiter) final(seen outcome) bool {
	kinds := []error{backend.ErrInUse}
	if w.patience > 0 {
		kinds = append(kinds, backend.ErrDenied, backend.ErrInvalid, backend.ErrShort, backend.ErrFull, backend.ErrConflict,
			backend.ErrNotPeered)
	}
	for _, kind := range kinds {
		if errors.Is(seen.err, kind) {
			return true
		}
	}
	return w.patience > 0 && !seen.silent.IsZero() && time.Since(seen.silent) > w.patience
}

// stopped is the error of a stage that the context's end cut short; it matches the last error that was seen, too. A
// request that was under way gives the cause for its own error: that is said once.
func (s *outcome) stopped(ctx context.Context, stage backend.Stage) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	message := strings.ReplaceAll(s.message, cause.Error(), "no answer")
	if !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	if s.err != nil {
		err = fmt.Errorf("%w (%w)", err, s.err)
	}
	return &backend.StageError{Stage: stage, Message: message, Err: err}
}
