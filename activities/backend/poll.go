package backend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
)

// Progress receives the stage that a verb waits for, and a sentence that describes the wait.
type Progress func(stage Stage, message string)

// Report calls p, unless p is nil.
func (p Progress) Report(stage Stage, message string) {
	if p != nil {
		p(stage, message)
	}
}

// Poll takes the next step towards a stage, if a step is due, and reports whether the stage is reached. If it is not
// reached, message describes the reason for the wait.
type Poll func(ctx context.Context) (reached bool, message string, err error)

// Run polls once, in a separate goroutine, so that it can report progress each second while a request hangs. It
// returns only after the poll has returned. If the poll panics, Run raises the same panic in the calling goroutine,
// where the verb's caller can recover it.
func (poll Poll) Run(ctx context.Context, progress Progress, stage Stage, waits string) (reached bool, message string,
	err error) {
	done := make(chan struct{})
	var fault error
	go func() {
		defer close(done)
		defer func() {
			if cause := recover(); cause != nil {
				fault = fmt.Errorf("look for %s: %v\n%s", stage, cause, debug.Stack())
			}
		}()
		reached, message, err = poll(ctx)
	}()
	ticks := time.NewTicker(time.Second)
	defer ticks.Stop()
	for {
		select {
		case <-done:
			if fault != nil {
				panic(fault)
			}
			return reached && err == nil, message, err
		case <-ticks.C:
			progress.Report(stage, waits)
		}
	}
}

// Step is a stage with the poll that reaches it.
type Step struct {
	Stage Stage
	Poll  Poll
}

// Through calls the function until for one step after another, and stops at the first error.
func Through(ctx context.Context, until func(context.Context, Stage, Poll) error, steps []Step) error {
	for _, step := range steps {
		if err := until(ctx, step.Stage, step.Poll); err != nil {
			return err
		}
	}
	return nil
}

// maxWords is the maximum length, in characters, of a KindError's message, which may contain the text of another
// component.
const maxWords = 500

// KindError is an error of one of this package's kinds, with its own message.
type KindError struct {
	Kind      error
	Message   string
	Forbidden bool // an API server answered 403
}

func (v *KindError) Error() string { return v.Message + ": " + v.Kind.Error() }

// Unwrap returns the kind.
func (v *KindError) Unwrap() error { return v.Kind }

// Errorf returns a KindError with a message of bounded length. The parameter kind is one of the error variables of
// this package.
func Errorf(kind error, format string, args ...any) error {
	return &KindError{Kind: kind, Message: shorten.Words(fmt.Sprintf(format, args...), maxWords)}
}

// SplitError splits an error into a message of bounded length and a kind, for a StageError. If the error contains no
// KindError, its kind is the error itself.
func SplitError(err error) (message string, kind error) {
	if v := (*KindError)(nil); errors.As(err, &v) {
		return v.Message, v.Kind
	}
	return shorten.Words(err.Error(), maxWords), err
}

// IsFinal reports whether an error is final, because longer waiting cannot help.
func IsFinal(err error) bool {
	return slices.ContainsFunc([]error{ErrInUse, ErrDenied, ErrInvalid, ErrShort, ErrFull, ErrConflict, ErrNotPeered},
		func(kind error) bool { return errors.Is(err, kind) })
}

// Stopped returns the error of a stage that was interrupted by the end of the context. The returned error matches the
// context's error and the context's cause. The parameter `met` is the last error before the end of the context, or nil.
// If `met` is not nil, the returned error also matches it. The message of an interrupted request often repeats the
// cause; Stopped replaces that text.
func Stopped(ctx context.Context, stage Stage, message string, met error) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	message = strings.ReplaceAll(message, cause.Error(), "no answer")
	if !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	if met != nil {
		err = fmt.Errorf("%w (%w)", err, met)
	}
	return &StageError{Stage: stage, Message: cmp.Or(message, "no answer in time"), Err: err}
}
