package activities_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	sdkworker "go.temporal.io/sdk/worker"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// under runs the activity with a context that the test can cancel.
func under(ctx context.Context) func(*testsuite.TestActivityEnvironment) {
	return func(env *testsuite.TestActivityEnvironment) {
		env.SetWorkerOptions(sdkworker.Options{BackgroundActivityContext: ctx})
	}
}

// An activity ends with an error. VerdictOf returns Refused only if the activity itself has classified the error as a
// refusal by the provider.
func TestOnlyTypedErrorsAreRefusals(t *testing.T) {
	short := &backend.StageError{Stage: backend.StageResources, Message: "granted 1 of 2", Err: backend.ErrShort}
	of := func(verb func(context.Context) error) error {
		a := &activities.Activities{Backend: &world{verb: verb}, Entities: running()}
		return ended(t, a.Establish, fleet.PeeringInput{Provider: fleet.Provider{ID: "milan"}})
	}
	for name, c := range map[string]struct {
		err   error
		kind  fleet.EventKind
		code  fleet.Code
		stage string
	}{
		"no room":  {of(fails(backend.ErrFull)), fleet.Refused, fleet.CodeNoCapacity, ""},
		"denied":   {of(fails(backend.ErrDenied)), fleet.Refused, fleet.CodeRefused, ""},
		"short":    {of(fails(short)), fleet.Refused, fleet.CodeRefused, "resources"},
		"conflict": {of(fails(backend.ErrConflict)), fleet.Refused, fleet.CodeRefused, ""},
		"invalid":  {of(fails(backend.ErrInvalid)), fleet.Refused, fleet.CodeRefused, ""},
		"a panic": {
			of(func(context.Context) error { panic("a defect") }), fleet.GaveUp, fleet.CodeInternal, "",
		},
		"a timeout": {
			temporal.NewTimeoutError(2, errors.New("heartbeat")), fleet.GaveUp, fleet.CodeInternal, "",
		},
		"our defect": {
			temporal.NewNonRetryableApplicationError("unknown", "Other", nil), fleet.GaveUp, fleet.CodeInternal, "",
		},
		"to be tried again": {of(fails(backend.ErrUnreachable)), fleet.GaveUp, fleet.CodeUnreachable, ""},
	} {
		t.Run(name, func(t *testing.T) {
			require.Error(t, c.err)
			kind, f := activities.VerdictOf(c.err, "milan")
			require.Equal(t, c.kind, kind)
			require.Equal(t, c.code, f.Code)
			require.Equal(t, c.stage, f.Stage)
			require.Equal(t, "milan", f.Provider)
			require.NotEmpty(t, f.Message)
		})
	}
}

// A stage was not reached. The failure's text contains the error that ended the wait, but not if that error is our
// own deadline.
func TestErrorOfAnUnreachedStageNamesItsCause(t *testing.T) {
	for err, want := range map[error]struct {
		code fleet.Code
		text string
	}{
		backend.ErrFull:        {fleet.CodeNoCapacity, "waiting for resources: cpu 1: no room at the provider"},
		backend.ErrDenied:      {fleet.CodeRefused, "waiting for resources: cpu 1: denied by the provider"},
		backend.ErrUnreachable: {fleet.CodeUnreachable, "waiting for resources: cpu 1: provider unreachable"},
		errors.New("defect"):   {fleet.CodeInternal, "waiting for resources: cpu 1: defect"},
		backend.ErrNoRoom:      {fleet.CodeNoRoom, "waiting for resources: cpu 1"},
		context.Canceled:       {fleet.CodeTimeout, "waiting for resources: cpu 1"},
	} {
		stage := &backend.StageError{Stage: backend.StageResources, Message: "cpu 1", Err: err}
		a := &activities.Activities{Backend: &world{verb: fails(stage)}, Entities: running()}
		f := activities.FailureOf(ended(t, a.Return, activities.ReturnInput{Attempt: attempt("a-t0-1")}), "milan")
		require.Equal(t, fleet.NewFailure(want.code, "milan", "resources", want.text), f)
	}
}

// When an operator cancels a step, the failure names the stage for which the step waited.
func TestCancelledStepNamesItsStage(t *testing.T) {
	at := attempt("a-t0-1")
	for name, call := range map[string]func(context.Context, *activities.Activities) error{
		"Establish": func(ctx context.Context, a *activities.Activities) error {
			return a.Establish(ctx, fleet.PeeringInput{Provider: at.Provider})
		},
		"Join": func(ctx context.Context, a *activities.Activities) error {
			return a.Join(ctx, activities.JoinInput{Node: backend.NodeSpec{Attempt: at}})
		},
		"Drain": func(ctx context.Context, a *activities.Activities) error {
			return a.Drain(ctx, activities.DrainInput{Attempt: at})
		},
		"Return": func(ctx context.Context, a *activities.Activities) error {
			return a.Return(ctx, activities.ReturnInput{Attempt: at})
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			w := &world{verb: func(ctx context.Context) error { cancel(); return hangs(ctx) }}
			var err error // the form that the worker sends to Temporal; the test environment would wrap it once more
			do := func(ctx context.Context, _ string) error {
				err = call(ctx, &activities.Activities{Backend: w, Entities: running()})
				return nil
			}
			_ = ended(t, do, "", under(ctx))
			require.True(t, temporal.IsCanceledError(err), "%v", err)
			wire := temporal.GetDefaultFailureConverter()
			err = wire.FailureToError(wire.ErrorToFailure(err))
			f := activities.FailureOf(err, "milan")
			require.Equal(t, fleet.CodeTimeout, f.Code)
			require.Equal(t, string(backend.StageSliceAuth), f.Stage)
			require.Equal(t, "waiting for slice-auth: no answer yet", f.Message)
		})
	}
	never := activities.FailureOf(temporal.NewCanceledError(), "milan")
	require.Equal(t, &fleet.Failure{Code: fleet.CodeTimeout, Provider: "milan", Message: "cancelled before it started"},
		never)
}

// An activity that an operator pauses or resets has not failed. It runs again.
func TestPausedActivityRunsAgain(t *testing.T) {
	for _, cause := range []error{activity.ErrActivityPaused, activity.ErrActivityReset} {
		t.Run(fmt.Sprint(cause), func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			w := &world{verb: func(ctx context.Context) error { cancel(cause); return hangs(ctx) }}
			err := ended(t, (&activities.Activities{Backend: w}).Drain, activities.DrainInput{Attempt: attempt("a-t0-1")},
				under(ctx))
			var app *temporal.ApplicationError
			require.ErrorAs(t, err, &app)
			require.False(t, app.NonRetryable())
			require.False(t, temporal.IsCanceledError(err))
		})
	}
}

// An error without a readable failure becomes a failure with the error's text. The failure always has a code.
func TestErrorWithoutAFailureGetsACode(t *testing.T) {
	internal := func(text string) *fleet.Failure { return fleet.NewFailure(fleet.CodeInternal, "milan", "", text) }
	cancelled := fleet.NewFailure(fleet.CodeTimeout, "milan", "", "cancelled before it started")
	for name, c := range map[string]struct {
		err  error
		want *fleet.Failure
	}{
		"no details":              {temporal.NewApplicationError("words", "Some"), internal("words")},
		"details of another kind": {temporal.NewApplicationError("words", "Some", "text"), internal("words")},
		"a failure without its code": {
			temporal.NewApplicationError("words", "Some", fleet.Failure{Stage: "tenant"}), internal("words"),
		},
		"cancelled":                 {temporal.NewCanceledError(), cancelled},
		"cancelled, other details":  {temporal.NewCanceledError("text"), cancelled},
		"cancelled, without a code": {temporal.NewCanceledError(fleet.Failure{Stage: "tenant"}), cancelled},
		"no error of Temporal's":    {errors.New("words"), internal("words")},
	} {
		t.Run(name, func(t *testing.T) {
			wire := temporal.GetDefaultFailureConverter()
			require.Equal(t, c.want, activities.FailureOf(wire.FailureToError(wire.ErrorToFailure(c.err)), "milan"))
		})
	}
}
