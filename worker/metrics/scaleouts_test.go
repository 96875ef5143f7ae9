package metrics_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/metrics"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// TestScaleOutDuration checks that the metric contains the time from the booking of a scale-out to its end, labelled
// with the outcome. Nothing is measured for a scale-out without an outcome, or for other workflows.
func TestScaleOutDuration(t *testing.T) {
	failed := workflows.Outcome{Phase: fleet.Failed, Code: fleet.CodeNoCapacity}
	for name, c := range map[string]struct {
		workflow string
		out      workflows.Outcome
		err      error
		want     string
	}{
		"ready": {workflow: workflows.TypeScaleOut, out: workflows.Outcome{Phase: fleet.Ready}, want: "Ready"},
		"failed, the first driver": {workflow: workflows.TypeScaleOut, out: failed, want: "NoCapacity",
			err: temporal.NewNonRetryableApplicationError("x", workflows.TypeInstanceFailed, nil, failed)},
		"failed, a later driver": {workflow: workflows.TypeScaleOut, out: failed, want: "NoCapacity"},
		"stopped": {workflow: workflows.TypeScaleOut, out: failed,
			err: temporal.NewNonRetryableApplicationError("x", "Stopped", nil, failed)},
		"an unknown code": {workflow: workflows.TypeScaleOut,
			out: workflows.Outcome{Phase: fleet.Failed, Code: "Surprise"}, want: "Internal"},
		"scale-in": {workflow: workflows.TypeScaleIn, out: workflows.Outcome{Phase: fleet.Released}},
	} {
		t.Run(name, func(t *testing.T) {
			reg := prometheus.NewRegistry()
			measure, err := metrics.NewScaleOuts(reg)
			require.NoError(t, err)
			var suite testsuite.WorkflowTestSuite
			env := suite.NewTestWorkflowEnvironment()
			env.SetWorkerOptions(sdkworker.Options{Interceptors: []interceptor.WorkerInterceptor{measure}})
			env.RegisterWorkflowWithOptions(func(ctx workflow.Context, _ fleet.DriverInput) (workflows.Outcome, error) {
				if err := workflow.Sleep(ctx, 96*time.Second); err != nil {
					return workflows.Outcome{}, err
				}
				return c.out, c.err
			}, workflow.RegisterOptions{Name: c.workflow})
			booked := fleet.Instance{BookedAt: env.Now().Add(-3 * time.Second)}
			env.ExecuteWorkflow(c.workflow, fleet.DriverInput{Instance: booked})
			require.True(t, env.IsWorkflowCompleted())
			if c.want == "" {
				require.Zero(t, series(t, reg, "liqo_autoscaler_scale_out_duration_seconds"))
				return
			}
			require.EqualValues(t, 1, value(t, reg, "liqo_autoscaler_scale_out_duration_seconds", "outcome", c.want))
			families, err := reg.Gather()
			require.NoError(t, err)
			h := families[0].GetMetric()[0].GetHistogram()
			require.InDelta(t, 99, h.GetSampleSum(), 0.5)
			for _, b := range h.GetBucket() {
				require.Equal(t, b.GetUpperBound() >= 100, b.GetCumulativeCount() == 1, "99 s, bucket up to %v", b.GetUpperBound())
			}
		})
	}
}
