package activities

import (
	"context"
	"errors"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// unreachableAttempts is how often a step comes back to a provider that does not answer before the instance moves on: a
// hiccup is ridden out, a dead provider costs seconds and not the step's whole budget.
const unreachableAttempts = 4

// wall translates what a backend said into what a workflow reads: an application error whose type is the failure's code
// and whose details are the fleet.Failure. It is the only place that does so.
func wall(ctx context.Context, provider string, err error) error {
	if err == nil {
		return nil
	}
	if stopping(ctx) {
		return err // this worker ends, or an operator paused the activity: it will run again, nothing failed
	}
	code, final := classify(err)
	if code == fleet.CodeUnreachable {
		final = activity.GetInfo(ctx).Attempt >= unreachableAttempts
	}
	if ctx.Err() != nil {
		final = true // cancelled: the workflow decides what that means, and reads the stage from the details
	}
	stage := ""
	var at *backend.StageError
	if errors.As(err, &at) {
		stage = string(at.Stage)
	}
	return failure(fleet.NewFailure(code, provider, stage, err.Error()), final)
}

func failure(f *fleet.Failure, final bool) error {
	return temporal.NewApplicationErrorWithOptions(f.Message, string(f.Code), temporal.ApplicationErrorOptions{
		NonRetryable: final, Details: []any{f},
	})
}

// classify says which code an error of the backend is, and whether trying the same again is pointless.
func classify(err error) (code fleet.Code, final bool) {
	switch {
	case errors.Is(err, backend.ErrDenied), errors.Is(err, backend.ErrShort), errors.Is(err, backend.ErrInvalid), errors.Is(err, backend.ErrConflict):
		return fleet.CodeRefused, true
	case errors.Is(err, backend.ErrUnreachable):
		return fleet.CodeUnreachable, false
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return fleet.CodeTimeout, false
	default:
		return fleet.CodeInternal, false
	}
}

// stopping tells whether the activity ends for a reason that has nothing to do with its work.
func stopping(ctx context.Context) bool {
	if errors.Is(context.Cause(ctx), activity.ErrActivityPaused) || errors.Is(context.Cause(ctx), activity.ErrActivityReset) {
		return true
	}
	select {
	case <-activity.GetWorkerStopChannel(ctx):
		return true
	default:
		return false
	}
}

// FailureOf reads the fleet.Failure out of a failed activity's error, for workflows. It never returns nil.
func FailureOf(err error, provider string) *fleet.Failure {
	var app *temporal.ApplicationError
	if errors.As(err, &app) {
		var f fleet.Failure
		if app.HasDetails() && app.Details(&f) == nil && f.Code != "" {
			return &f
		}
		return fleet.NewFailure(fleet.CodeInternal, provider, "", app.Message())
	}
	if temporal.IsTimeoutError(err) {
		return fleet.NewFailure(fleet.CodeTimeout, provider, "", "no worker finished the step in time: "+err.Error())
	}
	if temporal.IsCanceledError(err) {
		return fleet.NewFailure(fleet.CodeTimeout, provider, "", "cancelled before it started")
	}
	return fleet.NewFailure(fleet.CodeInternal, provider, "", err.Error())
}
