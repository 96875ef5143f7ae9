package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// The result of a scale-out contains the last phase of its instance and the reason. When the first scale-out of an
// instance fails, its workflow closes as Failed, so that people find it by its status. A later scale-out completes even
// when it fails, because its workflow id must stay in use.
func TestOnlyFirstScaleOutClosesAsFailed(t *testing.T) {
	full := fleet.NewFailure(fleet.CodeNoOffer, "", "", "nobody offers anything")
	failed := workflows.Outcome{Phase: fleet.Failed, Code: fleet.CodeNoOffer, Message: "nobody offers anything"}
	for name, c := range map[string]struct {
		first   bool
		choice  activities.SelectOutput
		want    workflows.Outcome
		asError bool
	}{
		"ready":                 {first: true, choice: milan, want: workflows.Outcome{Phase: fleet.Ready, Provider: "milan"}},
		"failed, the first":     {first: true, choice: activities.SelectOutput{Failure: full}, want: failed, asError: true},
		"failed, not the first": {choice: activities.SelectOutput{Failure: full}, want: failed},
	} {
		t.Run(name, func(t *testing.T) {
			var suite testsuite.WorkflowTestSuite
			env := suite.NewTestWorkflowEnvironment()
			for name, stub := range map[string]any{
				activities.NameDiscover: func(context.Context, activities.DiscoverInput) (activities.DiscoverOutput, error) {
					return activities.DiscoverOutput{}, nil
				},
				activities.NameSelect: func(context.Context, activities.SelectInput) (activities.SelectOutput, error) {
					return c.choice, nil
				},
				activities.NameJoin:   func(context.Context, activities.JoinInput) error { return nil },
				activities.NameReport: func(context.Context, activities.ReportInput) error { return nil },
			} {
				env.RegisterActivityWithOptions(stub, activity.RegisterOptions{Name: name})
			}
			spec := fleet.InstanceSpec{ID: "standard"}
			env.RegisterDelayedCallback(func() { env.SignalWorkflow(workflows.SignalAnswer, granted(1).what) }, time.Minute)
			env.ExecuteWorkflow(workflows.ScaleOut, fleet.DriverInput{First: c.first, Spec: spec,
				Instance: fleet.NewInstance(underTest, &spec, env.Now())})
			err := env.GetWorkflowError()
			var got workflows.Outcome
			if !c.asError {
				require.NoError(t, err)
				require.NoError(t, env.GetWorkflowResult(&got))
				require.Equal(t, c.want, got)
				return
			}
			var app *temporal.ApplicationError
			require.ErrorAs(t, err, &app)
			require.Equal(t, workflows.TypeInstanceFailed, app.Type())
			require.Equal(t, "NoOffer: nobody offers anything", app.Message())
			require.NoError(t, app.Details(&got))
			require.Equal(t, c.want, got)
		})
	}
}
