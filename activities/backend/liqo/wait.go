package liqo

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

// How often a stage is looked at: soon at first, because Liqo mostly takes well under a second, then seldom.
const (
	firstLook  = 50 * time.Millisecond
	seldomLook = 750 * time.Millisecond
	tellEvery  = time.Second
)

// beginning is the message of a stage that has not been looked at.
const beginning = "looking"

// look takes the next step towards a stage, if one is due, and tells whether the stage is reached; when it is not,
// message says what is being waited for. An error is retried unless it is a verdict.
type look func(ctx context.Context) (reached bool, message string, err error)

// waiter is how one verb waits.
type waiter struct {
	progress backend.Progress
	// patience is how long ErrUnreachable is put up with in a row. It has no effect on a stubborn waiter.
	patience time.Duration
	// refusal is how long a right that is missing is put up with in a row: an API server that has just started refuses
	// everybody until it has read its roles.
	refusal time.Duration
	// stubborn waiters put up with everything but ErrInUse until the context ends: they take back, and taking back never
	// gives up by itself.
	stubborn bool
}

// verdict is an error that names its kind and says it in words, once.
type verdict struct {
	kind      error
	message   string
	forbidden bool // an API server said 403
}

func (v *verdict) Error() string { return v.message + ": " + v.kind.Error() }
func (v *verdict) Unwrap() error { return v.kind }

// say makes a verdict. The kind is one of the port's sentinels.
func say(kind error, format string, args ...any) error {
	return &verdict{kind: kind, message: fmt.Sprintf(format, args...)}
}

// until looks until the stage is reached, a verdict is final, or the context ends; its error is a *backend.StageError.
func (w *waiter) until(ctx context.Context, stage backend.Stage, look look) error {
	var seen sight // the last look that the context's end did not spoil
	var unreachableSince, refusedSince time.Time
	w.tell(stage, beginning)
	for delay := firstLook; ; delay = min(delay*3/2, seldomLook) {
		now := w.look(ctx, stage, seen, look)
		if now.reached {
			return nil
		}
		if ctx.Err() != nil {
			return stopped(ctx, stage, seen)
		}
		refused := forbidden(now.err)
		if !refused {
			refusedSince = time.Time{}
		} else if refusedSince.IsZero() {
			refusedSince = time.Now()
		}
		if now.err != nil && w.final(now.err) && (!refused || time.Since(refusedSince) >= w.refusal) {
			return &backend.StageError{Stage: stage, Message: now.message, Err: kindOf(now.err)}
		}
		if !errors.Is(now.err, backend.ErrUnreachable) {
			unreachableSince = time.Time{}
		} else if unreachableSince.IsZero() {
			unreachableSince = time.Now()
		} else if !w.stubborn && time.Since(unreachableSince) > w.patience {
			return &backend.StageError{Stage: stage, Message: now.message, Err: backend.ErrUnreachable}
		}
		if now.message != seen.message {
			w.tell(stage, now.message)
		}
		seen = now
		if !w.pause(ctx, delay, stage, seen.message) {
			return stopped(ctx, stage, seen)
		}
	}
}

// sight is the outcome of one look.
type sight struct {
	reached bool
	message string
	err     error
	fault   error // what the look panicked with
}

// look looks once, in a goroutine of its own, so that this one can tell how things stand while a cluster that does not
// answer holds up the look. It returns only after the look has. If that panicked it does so too: here, unlike there, who
// called the verb can recover.
func (w *waiter) look(ctx context.Context, stage backend.Stage, before sight, look look) sight {
	result := make(chan sight, 1)
	go func() {
		defer func() {
			if cause := recover(); cause != nil {
				result <- sight{fault: fmt.Errorf("look for %s: %v\n%s", stage, cause, debug.Stack())}
			}
		}()
		reached, message, err := look(ctx)
		if err != nil {
			message = words(err)
		}
		result <- sight{reached: reached && err == nil, message: message, err: err}
	}()
	message := before.message
	if message == "" {
		message = beginning
	}
	ticks := time.NewTicker(tellEvery)
	defer ticks.Stop()
	for {
		select {
		case now := <-result:
			if now.fault != nil {
				panic(now.fault)
			}
			return now
		case <-ticks.C:
			w.tell(stage, message)
		}
	}
}

// pause waits between two looks; it is false when the context ends.
func (w *waiter) pause(ctx context.Context, delay time.Duration, stage backend.Stage, message string) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(delay):
	}
	if delay >= tellEvery/2 {
		w.tell(stage, message)
	}
	return true
}

func (w *waiter) tell(stage backend.Stage, message string) {
	if w.progress != nil {
		w.progress(stage, message)
	}
}

// final tells whether waiting longer cannot help.
func (w *waiter) final(err error) bool {
	if errors.Is(err, backend.ErrInUse) {
		return true
	}
	if w.stubborn {
		return false
	}
	for _, kind := range []error{backend.ErrDenied, backend.ErrInvalid, backend.ErrShort, backend.ErrConflict, backend.ErrNotPeered} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}

// forbidden tells whether an API server refused a right.
func forbidden(err error) bool {
	var v *verdict
	return apierrors.IsForbidden(err) || errors.As(err, &v) && v.forbidden
}

// stopped is the error of a stage that the context's end cut short. It matches the context's error, its cause, and the
// kind of the last trouble.
func stopped(ctx context.Context, stage backend.Stage, seen sight) error {
	message, err := seen.message, ctx.Err()
	if cause := context.Cause(ctx); !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	var v *verdict
	if errors.As(seen.err, &v) {
		err = fmt.Errorf("%w (%w)", err, v.kind)
	}
	if message == "" {
		message = "no answer in time"
	}
	return &backend.StageError{Stage: stage, Message: message, Err: err}
}

// words is an error without the kind that the StageError repeats.
func words(err error) string {
	var v *verdict
	if errors.As(err, &v) {
		return v.message
	}
	return err.Error()
}

func kindOf(err error) error {
	var v *verdict
	if errors.As(err, &v) {
		return v.kind
	}
	return err
}
