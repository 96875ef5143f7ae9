package metrics_test

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/metrics"
)

// The metric for the difference to another clock is absent until the difference is measured. Each activity measures the
// difference to Temporal's clock.
func TestClockDifferenceIsMeasured(t *testing.T) {
	const name = "liqo_autoscaler_clock_ahead_seconds"
	reg := prometheus.NewRegistry()
	clocks := &metrics.Clocks{}
	require.NoError(t, clocks.Register(reg))
	require.Zero(t, series(t, reg, name))
	clocks.Set(metrics.ClockOfAPIServer, -90*time.Second)
	require.EqualValues(t, -90, value(t, reg, name, "of", "api-server"))

	s, err := metrics.NewSteps(reg, clocks)
	require.NoError(t, err)
	require.NoError(t, run(t, s, "Drain", func(context.Context) (activities.SelectOutput, error) {
		return activities.SelectOutput{}, nil
	}))
	require.Equal(t, 2, series(t, reg, name))
	require.InDelta(t, 0, clocks.Ahead()[metrics.ClockOfTemporal].Seconds(), 60, "one clock")
	lint(t, reg)
}
