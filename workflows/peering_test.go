package workflows_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// The Peering workflow reports its end to the Provider workflow, unless its activity has already reported success. The
// report of a failure, or of an operator's cancellation, contains the code.
func TestEndOfAPeeringIsReported(t *testing.T) {
	unreachable := fleet.NewFailure(fleet.CodeUnreachable, "milan", "tenant", "no route")
	for name, c := range map[string]struct {
		err    error
		cancel bool
		want   fleet.PeeringEvent
		code   fleet.Code
	}{
		"established": {},
		"failed": {err: temporal.NewNonRetryableApplicationError("no route", string(unreachable.Code), nil, unreachable),
			want: fleet.PeeringFailed, code: fleet.CodeUnreachable},
		"cancelled": {cancel: true, want: fleet.PeeringFailed, code: fleet.CodeCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			var suite testsuite.WorkflowTestSuite
			env := suite.NewTestWorkflowEnvironment()
			var told []*fleet.PeeringReport
			env.RegisterActivityWithOptions(func(ctx context.Context, _ fleet.PeeringInput) error {
				if c.cancel {
					env.CancelWorkflow()
					<-ctx.Done()
					return ctx.Err()
				}
				return c.err
			}, activity.RegisterOptions{Name: activities.NameEstablish})
			env.RegisterActivityWithOptions(func(_ context.Context, in activities.ReportInput) error {
				told = append(told, in.Report)
				return nil
			}, activity.RegisterOptions{Name: activities.NameReport})
			env.ExecuteWorkflow(workflows.Peering, fleet.PeeringInput{Provider: fleet.Provider{ID: "milan"}, Run: 3})
			require.True(t, env.IsWorkflowCompleted())
			if c.want == "" {
				require.Empty(t, told)
				return
			}
			require.Len(t, told, 1)
			require.EqualValues(t, 3, told[0].Run)
			require.Equal(t, c.want, told[0].Event)
			require.Equal(t, c.code, told[0].Failure.Code)
		})
	}
}
