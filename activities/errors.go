package activities

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// TypeGaveUp is the second detail of the error of a step that used up its budget.
const TypeGaveUp = "GaveUp"

// failureOf converts a backend's error into the failure that users and CA see.
func failureOf(provider string, err error) *fleet.Failure {
	c, stage, text := code(err), "", err.Error()
	var at *backend.StageError
	if errors.As(err, &at) {
		if stage = string(at.Stage); c.Row().OfStage {
			text = fmt.Sprintf("waiting for %s: %s", at.Stage, at.Message)
		}
	}
	return fleet.NewFailure(c, provider, stage, text)
}

// code returns the failure code of a backend's error.
func code(err error) fleet.Code {
	switch {
	case errors.Is(err, backend.ErrFull):
		return fleet.CodeNoCapacity
	case errors.Is(err, backend.ErrDenied), errors.Is(err, backend.ErrShort), errors.Is(err, backend.ErrInvalid),
		errors.Is(err, backend.ErrConflict):
		return fleet.CodeRefused
	case errors.Is(err, backend.ErrNoRoom):
		return fleet.CodeNoRoom
	case errors.Is(err, backend.ErrUnreachable):
		return fleet.CodeUnreachable
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return fleet.CodeTimeout
	default:
		return fleet.CodeInternal
	}
}

// refused returns the final error of a step that its provider refused. If the provider refuses this hub as a whole,
// the third detail of the error is that refusal.
func refused(f *fleet.Failure, err error) error {
	return temporal.NewApplicationErrorWithOptions(f.Message, string(f.Code), temporal.ApplicationErrorOptions{
		NonRetryable: true, Details: []any{f, "", refusalIn(err)},
	})
}

// refusalIn returns the refusal from a backend's error if the provider refuses this hub as a whole, otherwise nil.
func refusalIn(err error) *fleet.ProviderRefusal {
	var refusing *backend.RefusingError
	if !errors.As(err, &refusing) {
		return nil
	}
	return &refusing.ProviderRefusal
}

// RefusalOf is refusalIn for workflows: it reads the refusal from a failed activity's error. It returns nil when the
// error contains no refusal.
func RefusalOf(err error) *fleet.ProviderRefusal {
	var app *temporal.ApplicationError
	var f fleet.Failure
	var how string
	var refusing *fleet.ProviderRefusal
	if !errors.As(err, &app) || !app.HasDetails() || app.Details(&f, &how, &refusing) != nil {
		return nil
	}
	return refusing
}

// toApplicationError converts an error of an activity that Temporal retries until it succeeds.
func toApplicationError(ctx context.Context, provider string, err error) error {
	if err == nil || stopping(ctx) {
		return err // the worker stops, or an operator paused the activity: it runs again, and nothing has failed
	}
	f := failureOf(provider, err)
	return temporal.NewApplicationErrorWithOptions(f.Message, string(f.Code),
		temporal.ApplicationErrorOptions{Details: []any{f}})
}

// stopping reports whether the activity ends for a reason outside its own work: the worker stops, or an operator has
// paused or reset the activity.
func stopping(ctx context.Context) bool {
	if errors.Is(context.Cause(ctx), activity.ErrActivityPaused) || errors.Is(context.Cause(ctx),
		activity.ErrActivityReset) {
		return true
	}
	select {
	case <-activity.GetWorkerStopChannel(ctx):
		return true
	default:
		return false
	}
}

// CalledOff reports whether an activity ended because its workflow cancelled it. It also returns true for a pass that
// ended before it received the cancellation: Temporal does not retry such a pass, and returns the pass's own error
// with the retry state CANCEL_REQUESTED.
func CalledOff(err error) bool {
	var of *temporal.ActivityError
	return temporal.IsCanceledError(err) ||
		errors.As(err, &of) && of.RetryState() == enums.RETRY_STATE_CANCEL_REQUESTED
}

// VerdictOf classifies the error of an activity for drivers. It returns Cancelled when the workflow cancelled the
// activity, Refused when the activity returned a final failure, and GaveUp when the step's budget is used up. It also
// returns GaveUp for any other error, because the provider has not caused it.
func VerdictOf(err error, provider string) (fleet.EventKind, *fleet.Failure) {
	f := FailureOf(err, provider)
	if CalledOff(err) {
		return fleet.Cancelled, f
	}
	var app *temporal.ApplicationError
	if !errors.As(err, &app) || !app.NonRetryable() || !f.Code.Row().Final {
		return fleet.GaveUp, f
	}
	var details fleet.Failure
	var how string
	if app.HasDetails() && app.Details(&details, &how) == nil && how == TypeGaveUp {
		return fleet.GaveUp, f
	}
	return fleet.Refused, f
}

// FailureOf reads the fleet.Failure from a failed activity's error, for workflows. It never returns nil.
func FailureOf(err error, provider string) *fleet.Failure {
	var f fleet.Failure
	var app *temporal.ApplicationError
	var canceled *temporal.CanceledError
	switch {
	case errors.As(err, &app):
		if app.HasDetails() && app.Details(&f) == nil && f.Code != "" {
			return &f
		}
		return fleet.NewFailure(fleet.CodeInternal, provider, "", app.Message())
	case errors.As(err, &canceled):
		if canceled.HasDetails() && canceled.Details(&f) == nil && f.Code != "" {
			return &f
		}
		return fleet.NewFailure(fleet.CodeTimeout, provider, "", "cancelled before it started")
	default:
		return fleet.NewFailure(fleet.CodeInternal, provider, "", err.Error())
	}
}
