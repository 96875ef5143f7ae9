package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	sdkworker "go.temporal.io/sdk/worker"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/registry"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/metrics"
)

// run runs one activity through the interceptor in the same way as a worker.
func run(t *testing.T, s *metrics.Steps, name string, do func(context.Context) (activities.SelectOutput, error)) error {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.SetWorkerOptions(sdkworker.Options{Interceptors: []interceptor.WorkerInterceptor{s}})
	env.RegisterActivityWithOptions(do, activity.RegisterOptions{Name: name})
	_, err := env.ExecuteActivity(name)
	return err
}

func fails(err error) func(context.Context) (activities.SelectOutput, error) {
	return func(context.Context) (activities.SelectOutput, error) { return activities.SelectOutput{}, err }
}

// failed returns an error in the form in which activities return it.
func failed(code fleet.Code, provider string, more ...any) error {
	f := fleet.NewFailure(code, provider, "", "why")
	return temporal.NewApplicationErrorWithOptions(f.Message, string(code),
		temporal.ApplicationErrorOptions{Details: append([]any{f}, more...)})
}

func TestStepsAreCountedByTheirCode(t *testing.T) {
	for name, tc := range map[string]struct {
		do             func(context.Context) (activities.SelectOutput, error)
		code, provider string
		good           bool
	}{
		"done":    {do: fails(nil), code: "OK", good: true},
		"refused": {do: fails(failed(fleet.CodeRefused, "milan")), code: "Refused", provider: "milan"},
		"capacity": {
			do:   fails(failed(fleet.CodeNoCapacity, "milan", map[string]string{"cpu": "2"})),
			code: "NoCapacity", provider: "milan",
		},
		"busy": {do: fails(temporal.NewApplicationError("no place", activities.TypeBusy)), code: "Busy", good: true},
		"not confirmed by its group": {
			do: fails(temporal.NewApplicationError("not booked", activities.TypeUnconfirmed)), code: "Unconfirmed", good: true,
		},
		"an unknown type": {
			do: fails(temporal.NewApplicationError("hello", "liqo://standard/standard-t0-1")), code: "Internal",
		},
		"details of another type": {do: fails(temporal.NewApplicationError("hello", "Timeout", "text")), code: "Timeout"},
		"a plain error":           {do: fails(errors.New("broken")), code: "Internal"},
		"cancelled":               {do: fails(context.Canceled), code: "Stopped", good: true},
		"panic": {do: func(context.Context) (activities.SelectOutput, error) { panic("a defect") },
			code: "Internal"},
		"nothing fits": {do: func(context.Context) (activities.SelectOutput, error) {
			return activities.SelectOutput{Failure: fleet.NewFailure(fleet.CodeNoOffer, "", "", "nobody offers it")}, nil
		}, code: "NoOffer"},
	} {
		t.Run(name, func(t *testing.T) {
			reg := prometheus.NewRegistry()
			s, err := metrics.NewSteps(reg, &metrics.Clocks{})
			require.NoError(t, err)
			_ = run(t, s, "Establish", tc.do)
			require.EqualValues(t, 1,
				value(t, reg, "liqo_autoscaler_step_duration_seconds", "step", "Establish", "code", tc.code))
			require.EqualValues(t, 0, value(t, reg, "liqo_autoscaler_steps_running", "step", "Establish"))
			failures := value(t, reg, "liqo_autoscaler_step_failures_total", "step", "Establish", "code", tc.code)
			require.Equal(t, tc.good, failures == 0, "%v", failures)
			if tc.provider != "" {
				require.EqualValues(t, 1, value(t, reg, "liqo_autoscaler_provider_failures_total", "provider", tc.provider, "code",
					tc.code))
			} else {
				require.Zero(t, series(t, reg, "liqo_autoscaler_provider_failures_total"))
			}
			lint(t, reg)
		})
	}
}

func TestRunningStepIsCounted(t *testing.T) {
	reg := prometheus.NewRegistry()
	s, err := metrics.NewSteps(reg, &metrics.Clocks{})
	require.NoError(t, err)
	require.NoError(t, run(t, s, "Drain", func(context.Context) (activities.SelectOutput, error) {
		require.EqualValues(t, 1, value(t, reg, "liqo_autoscaler_steps_running", "step", "Drain"))
		return activities.SelectOutput{}, nil
	}))
}

// The number of label values stays small, however many providers have offers.
func TestProviderLabelsAreBounded(t *testing.T) {
	reg := prometheus.NewRegistry()
	s, err := metrics.NewSteps(reg, &metrics.Clocks{})
	require.NoError(t, err)
	for i := range metrics.MaxProviders + 3 {
		require.Error(t, run(t, s, "Establish", fails(failed(fleet.CodeUnreachable, fmt.Sprintf("p%d", i)))))
	}
	require.Error(t, run(t, s, "Establish", fails(failed(fleet.CodeUnreachable, "p0"))))
	const name = "liqo_autoscaler_provider_failures_total"
	require.Equal(t, metrics.MaxProviders+1, series(t, reg, name))
	require.EqualValues(t, 3, value(t, reg, name, "provider", metrics.OtherProviders))
	require.EqualValues(t, 2, value(t, reg, name, "provider", "p0"))
}

func TestRegistryNamesTheVersion(t *testing.T) {
	reg := registry.New("v1.2.3")
	require.EqualValues(t, 1, value(t, reg, "liqo_autoscaler_build_info", "version", "v1.2.3"))
	require.NotZero(t, series(t, reg, "go_goroutines"))
	lint(t, reg)
}

func lint(t *testing.T, reg prometheus.Gatherer) {
	t.Helper()
	families, err := reg.Gather()
	require.NoError(t, err)
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	require.NoError(t, err)
	require.Empty(t, problems)
}

// value returns the sum of all series with that name and the given labels. For a histogram it returns the sum of the
// counts.
func value(t *testing.T, reg prometheus.Gatherer, name string, labels ...string) float64 {
	t.Helper()
	sum, _ := gather(t, reg, name, labels...)
	return sum
}

func series(t *testing.T, reg prometheus.Gatherer, name string, labels ...string) int {
	t.Helper()
	_, n := gather(t, reg, name, labels...)
	return n
}

func gather(t *testing.T, reg prometheus.Gatherer, name string, labels ...string) (sum float64, n int) {
	t.Helper()
	families, err := reg.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			has := map[string]string{}
			for _, l := range m.GetLabel() {
				has[l.GetName()] = l.GetValue()
			}
			match := true
			for i := 0; i < len(labels); i += 2 {
				match = match && has[labels[i]] == labels[i+1]
			}
			if match {
				n++
				sum += m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return sum, n
}
