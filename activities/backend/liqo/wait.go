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

// These are the pauses between two polls of a stage. The first pause is short, because Liqo usually takes much less
// than a second. Then the pauses become longer.
const (
	firstPause   = 50 * time.Millisecond
	longestPause = 750 * time.Millisecond
	// These are the pauses while a Watch reports changes. Two hundred waiting Joins with the short pauses would use
	// most of the allowed requests to the API server.
	watchedFirstPause   = 300 * time.Millisecond
	watchedLongestPause = 2 * time.Second
)

// noAnswer is a minimum duration. A request that the context's end interrupts counts as unanswered only if it has run
// for at least noAnswer.
const noAnswer = time.Second

// notPolled is the message of a stage that has not been polled yet.
const notPolled = "looking"

// poll checks a stage, and takes the next step towards it. An error is retried unless it is final.
type poll = backend.Poll

// waiter waits for the stages of one verb.
type waiter struct {
	progress backend.Progress
	changed  <-chan struct{} // if not nil, ends a pause between two polls
	first    time.Duration   // the first pause; 0 means firstPause
	longest  time.Duration   // the longest pause; 0 means longestPause
	started  time.Time       // when the verb was first called, see backend.StartTime
	// patience is the time for which ErrUnreachable is tolerated without interruption. It has no effect on a stubborn
	// waiter. If a pass ends before this time, its error also matches ErrUnreachable, and the caller measures the
	// time over all passes.
	patience time.Duration
	// refusal is the time for which a missing permission is tolerated without interruption: an API server that has
	// just started refuses every request until it has read its roles. If the verb was first called longer ago than
	// this time, the refusal is final after one pass in which every poll was refused.
	refusal time.Duration
	// stubborn makes the waiter retry every error except ErrInUse until the context ends: a removal never gives up on its
	// own.
	stubborn bool
}

// making returns the waiter of Establish and Join, which may fail before the context ends.
func (b *Backend) making(ctx context.Context, progress backend.Progress) *waiter {
	return &waiter{
		progress: progress, started: backend.StartTime(ctx), patience: b.config.UnreachableAfter, refusal: b.graces.refusal,
	}
}

type kindError = backend.KindError

func errorf(kind error, format string, args ...any) error {
	return backend.Errorf(kind, format, args...)
}

// until polls until the stage is reached, and then returns nil. It returns a *backend.StageError when an error is final
// or the context ends.
func (w *waiter) until(ctx context.Context, stage backend.Stage, check poll) error {
	var seen pollResult // the last poll that the context's end did not interrupt
	past := history{onlyRefused: true}
	w.progress.Report(stage, notPolled)
	for delay := cmp.Or(w.first, firstPause); ; delay = min(delay*3/2, cmp.Or(w.longest, longestPause)) {
		polledAt := time.Now()
		reached, message, err := check.Run(ctx, w.progress, stage, cmp.Or(seen.message, notPolled))
		if reached {
			return nil
		}
		now := pollResultOf(message, err)
		if ctx.Err() != nil {
			if errors.Is(now.err, backend.ErrUnreachable) && time.Since(polledAt) > noAnswer {
				seen = now // the missing answer is the result
			}
			return w.ended(ctx, stage, seen, past.onlyRefused)
		}
		past.add(now.err)
		if err := w.finalError(stage, now, &past); err != nil {
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

// history summarizes the polls of one stage.
type history struct {
	onlyRefused          bool // every poll so far was refused
	unreachable, refused streak
}

func (h *history) add(err error) {
	refused := forbidden(err)
	h.onlyRefused = h.onlyRefused && refused
	h.refused.add(refused)
	h.unreachable.add(errors.Is(err, backend.ErrUnreachable))
}

// streak measures for how long a condition has been true without interruption.
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

// finalError returns the error that ends the stage now: longer waiting cannot help, or the provider has been
// unreachable for too long. Otherwise it returns nil.
func (w *waiter) finalError(stage backend.Stage, now pollResult, past *history) error {
	if now.err != nil && w.final(now.err) && (!forbidden(now.err) || past.refused.lasts >= w.refusal) {
		return stageError(stage, now)
	}
	if !w.stubborn && past.unreachable.lasts > w.patience {
		return &backend.StageError{Stage: stage, Message: now.message, Err: backend.ErrUnreachable}
	}
	return nil
}

// ended returns the error of a stage that was interrupted by the context's end. It returns the refusal if every poll of
// a whole pass was refused, and otherwise backend.Stopped.
func (w *waiter) ended(ctx context.Context, stage backend.Stage, seen pollResult, onlyRefused bool) error {
	if onlyRefused && seen.err != nil && w.final(seen.err) && time.Since(w.started) >= w.refusal {
		return stageError(stage, seen)
	}
	var met error
	if v := (*kindError)(nil); errors.As(seen.err, &v) && (w.stubborn || !v.Forbidden) { // Forbidden looks final
		met = v.Kind
	}
	return backend.Stopped(ctx, stage, seen.message, met)
}

func stageError(stage backend.Stage, seen pollResult) error {
	_, kind := backend.SplitError(seen.err)
	return &backend.StageError{Stage: stage, Message: seen.message, Err: kind}
}

// pollResult is the outcome of a poll that has not reached its stage.
type pollResult struct {
	message string
	err     error
}

func pollResultOf(message string, err error) pollResult {
	if err != nil {
		message, _ = backend.SplitError(err)
	}
	return pollResult{message: shorten.Words(message, maxWords), err: err}
}

// pause waits until the delay has passed or a change is reported. It returns false when the context ends.
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

// final reports whether longer waiting cannot help.
func (w *waiter) final(err error) bool {
	if w.stubborn {
		return errors.Is(err, backend.ErrInUse)
	}
	return backend.IsFinal(err) || apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}

// forbidden reports whether an API server refused a request because of a missing permission.
func forbidden(err error) bool {
	var v *kindError
	return apierrors.IsForbidden(err) || errors.As(err, &v) && v.Forbidden
}
