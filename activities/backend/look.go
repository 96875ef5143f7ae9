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

// Tell calls it, unless it is nil.
func (p Progress) Tell(stage Stage, message string) {
	if p != nil {
		p(stage, message)
	}
}

// Look takes the next step towards a stage, if one is due, and reports whether the stage is reached; if not, message
// says what it waits for.
type Look func(ctx context.Context) (reached bool, message string, err error)

// Take looks once, in a goroutine of its own, so that progress is still told each second while a request hangs. It
// returns only after the look has. A panic of the look is raised again here, where the verb's caller can recover it.
func (look Look) Take(ctx context.Context, progress Progress, stage Stage, waits string) (reached bool, message string,
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
			progress.Tell(stage, waits)
		}
	}
}

// Step is a stage and the way there.
type Step struct {
	Stage Stage
	Look  Look
}

// Through takes the steps one after the other, each by until.
func Through(ctx context.Context, until func(context.Context, Stage, Look) error, steps []Step) error {
	for _, step := range steps {
		if err := until(ctx, step.Stage, step.Look); err != nil {
			return err
		}
	}
	return nil
}

// maxWords is how much of others' words a Verdict repeats, in characters.
const maxWords = 500

// Verdict is an error of one of the port's kinds, with a message of its own.
type Verdict struct {
	Kind      error
	Message   string
	Forbidden bool // an API server said 403
}

func (v *Verdict) Error() string { return v.Message + ": " + v.Kind.Error() }

// Unwrap makes errors.Is and errors.As see the kind.
func (v *Verdict) Unwrap() error { return v.Kind }

// Say makes a Verdict, of bounded length. The kind is one of the sentinels.
func Say(kind error, format string, args ...any) error {
	return &Verdict{Kind: kind, Message: shorten.To(fmt.Sprintf(format, args...), maxWords)}
}

// Said takes an error apart for a StageError: what it says, of bounded length, and its kind, which of one that is no
// Verdict is itself.
func Said(err error) (message string, kind error) {
	if v := (*Verdict)(nil); errors.As(err, &v) {
		return v.Message, v.Kind
	}
	return shorten.To(err.Error(), maxWords), err
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
