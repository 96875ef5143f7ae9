package liqo

import (
	"cmp"
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
)

// How often a stage is polled: often at first, because Liqo mostly takes well under a second, then seldom.
const (
	firstLook  = 50 * time.Millisecond
	seldomLook = 750 * time.Millisecond
	// Where a Watch tells what changes: two hundred Joins that wait would ask the API server for most of what they may.
	toldLook       = 300 * time.Millisecond
	toldSeldomLook = 2 * time.Second
)

// noAnswer is how long a request has to be pending for its cancellation to mean that nobody answers it.
const noAnswer = time.Second

// beginning is the message of a stage that has not been polled yet.
const beginning = "looking"

// look is a step towards a stage. An error is retried unless it is a verdict.
type look = backend.Poll

// waiter is how one verb waits.
type waiter struct {
	progress backend.Progress
	changed  <-chan struct{} // if any, ends a pause between two polls
	first    time.Duration   // the first pause; 0 means firstLook
	longest  time.Duration   // what pauses grow to; 0 means seldomLook
	begun    time.Time       // when the verb was first called, see backend.Begun
	// patience is how long ErrUnreachable is tolerated in a row. It has no effect on a stubborn waiter. The error of a
	// pass that ends earlier matches ErrUnreachable too, and the caller measures the time over all passes.
	patience time.Duration
	// refusal is how long a missing permission is tolerated in a row: an API server that has just started refuses
	// everybody until it has read its roles. For a verb that began longer ago, one whole pass of refusals is enough.
	refusal time.Duration
	// stubborn waiters retry everything but ErrInUse until the context ends: removal never gives up by itself.
	stubborn bool
}

// making returns the waiter of Establish and Join, which give up by themselves.
func (b *Backend) making(ctx context.Context, progress backend.Progress) *waiter {
	return &waiter{
		progress: progress, begun: backend.Begun(ctx), patience: b.config.UnreachableAfter, refusal: b.graces.refusal,
	}
}

type verdict = backend.KindError

func say(kind error, format string, args ...any) error { return backend.Errorf(kind, format, args...) }

// until polls until the stage is reached, a verdict is final, or the context ends; its error is a *backend.StageError.
func (w *waiter) until(ctx context.Context, stage backend.Stage, look look) error {
	var seen sight // the last look that the context's end did not spoil
	past := history{onlyRefused: true}
	w.progress.Report(stage, beginning)
	for delay := cmp.Or(w.first, firstLook); ; delay = min(delay*3/2, cmp.Or(w.longest, seldomLook)) {
		asked := time.Now()
		reached, message, err := look.Take(ctx, w.progress, stage, cmp.Or(seen.message, beginning))
		if reached {
			return nil
		}
		now := sightOf(message, err)
		if ctx.Err() != nil {
			if errors.Is(now.err, backend.ErrUnreachable) && time.Since(asked) > noAnswer {
				seen = now // no answer is what was seen
			}
			return w.ended(ctx, stage, seen, past.onlyRefused)
		}
		past.add(now.err)
		if err := w.givesUp(stage, now, &past); err != nil {
			return err
		}
		if now.message != seen.message {
			w.progress.Report(stage, now.message)
		}
		seen = now
		if !w.pause(ctx, delay, stage, seen.message) {
			return w.ended(ctx, stage, seen, past.onlyRefused)
		}
	}
}

// history is what the looks of one stage have met so far.
type history struct {
	onlyRefused          bool // every look so far was refused
	unreachable, refused streak
}

func (h *history) add(err error) {
	refused := forbidden(err)
	h.onlyRefused = h.onlyRefused && refused
	h.refused.add(refused)
	h.unreachable.add(errors.Is(err, backend.ErrUnreachable))
}

// streak measures how long a condition has held without interruption.
type streak struct {
	began time.Time
	lasts time.Duration
}

func (s *streak) add(holds bool) {
	switch {
	case !holds:
		*s = streak{}
	case s.began.IsZero():
		s.began = time.Now()
	default:
		s.lasts = time.Since(s.began)
	}
}

// givesUp returns the error that ends the stage now, if waiting longer cannot help or has lasted too long.
func (w *waiter) givesUp(stage backend.Stage, now sight, past *history) error {
	if now.err != nil && w.final(now.err) && (!forbidden(now.err) || past.refused.lasts >= w.refusal) {
		return verdictOf(stage, now)
	}
	if !w.stubborn && past.unreachable.lasts > w.patience {
		return &backend.StageError{Stage: stage, Message: now.message, Err: backend.ErrUnreachable}
	}
	return nil
}

// ended returns the error of a stage that the context's end cut short: the refusal if a whole pass met nothing else,
// otherwise backend.Stopped.
func (w *waiter) ended(ctx context.Context, stage backend.Stage, seen sight, onlyRefused bool) error {
	if onlyRefused && seen.err != nil && w.final(seen.err) && time.Since(w.begun) >= w.refusal {
		return verdictOf(stage, seen)
	}
	var met error
	if v := (*verdict)(nil); errors.As(seen.err, &v) && (w.stubborn || !v.Forbidden) { // else it would be taken for final
		met = v.Kind
	}
	return backend.Stopped(ctx, stage, seen.message, met)
}

func verdictOf(stage backend.Stage, seen sight) error {
	_, kind := backend.SplitError(seen.err)
	return &backend.StageError{Stage: stage, Message: seen.message, Err: kind}
}

// sight is the outcome of a look that has not reached its stage.
type sight struct {
	message string
	err     error
}

func sightOf(message string, err error) sight {
	if err != nil {
		message, _ = backend.SplitError(err)
	}
	return sight{message: shorten.Words(message, maxWords), err: err}
}

// pause waits between two polls, or until something has changed; it returns false when the context ends.
func (w *waiter) pause(ctx context.Context, delay time.Duration, stage backend.Stage, message string) bool {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.changed:
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return false
	}
	if delay >= time.Second/2 {
		w.progress.Report(stage, message)
	}
	return true
}

// final reports whether waiting longer cannot help.
func (w *waiter) final(err error) bool {
	if w.stubborn {
		return errors.Is(err, backend.ErrInUse)
	}
	return backend.IsFinal(err) || apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}

// forbidden reports whether an API server refused a request for lack of permission.
func forbidden(err error) bool {
	var v *verdict
	return apierrors.IsForbidden(err) || errors.As(err, &v) && v.Forbidden
}
