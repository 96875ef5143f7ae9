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

// Progress receives the stage a verb is waiting for and a sentence about it.
type Progress func(stage Stage, message string)

// Report calls it, unless it is nil.
func (p Progress) Report(stage Stage, message string) {
	if p != nil {
		p(stage, message)
	}
}

// Poll takes the next step towards a stage, if one is due, and reports whether the stage is reached; if not, message
// says what it waits for.
type Poll func(ctx context.Context) (reached bool, message string, err error)

// Take looks once, in a goroutine of its own, so that progress is still told each second while a request hangs. It
// returns only after the look has. A panic of the look is raised again here, where the verb's caller can recover it.
func (look Poll) Take(ctx context.Context, progress Progress, stage Stage, waits string) (reached bool, message string,
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
		reached, message, err = look(ctx)
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

// Step is a stage and the way there.
type Step struct {
	Stage Stage
	Poll  Poll
}

// Through takes the steps one after the other, each by until.
func Through(ctx context.Context, until func(context.Context, Stage, Poll) error, steps []Step) error {
	for _, step := range steps {
		if err := until(ctx, step.Stage, step.Poll); err != nil {
			return err
		}
	}
	return nil
}

// maxWords is how much of others' words a KindError repeats, in characters.
const maxWords = 500

// KindError is an error of one of the port's kinds, with a message of its own.
type KindError struct {
	Kind      error
	Message   string
	Forbidden bool // an API server said 403
}

func (v *KindError) Error() string { return v.Message + ": " + v.Kind.Error() }

// Unwrap makes errors.Is and errors.As see the kind.
func (v *KindError) Unwrap() error { return v.Kind }

// Errorf makes a KindError, of bounded length. The kind is one of the sentinels.
func Errorf(kind error, format string, args ...any) error {
	return &KindError{Kind: kind, Message: shorten.Words(fmt.Sprintf(format, args...), maxWords)}
}

// SplitError takes an error apart for a StageError: what it says, of bounded length, and its kind, which of one that
// is no KindError is itself.
func SplitError(err error) (message string, kind error) {
	if v := (*KindError)(nil); errors.As(err, &v) {
		return v.Message, v.Kind
	}
	return shorten.Words(err.Error(), maxWords), err
}

// IsFinal reports whether an error says no: waiting longer cannot help.
func IsFinal(err error) bool {
	return slices.ContainsFunc([]error{ErrInUse, ErrDenied, ErrInvalid, ErrShort, ErrFull, ErrConflict, ErrNotPeered},
		func(kind error) bool { return errors.Is(err, kind) })
}

// Stopped is the error of a stage that the context's end cut short. It matches the context's error, its cause, and what
// was met last, if anything was. A request that was under way gives the cause for its own error: that is said once.
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
