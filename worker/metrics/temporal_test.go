package metrics_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/registry"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/metrics"
)

// The SDK's metrics are exported in the form that Prometheus expects: counters that only grow, and latencies in seconds
// with suitable buckets.
func TestTemporalMetricsAreExported(t *testing.T) {
	reg := prometheus.NewRegistry()
	h, err := metrics.Temporal(reg, func(err error) { require.NoError(t, err) })
	require.NoError(t, err)
	h = h.WithTags(map[string]string{"operation": "UpdateWorkflowExecution", "client_name": "temporal_go",
		"workflow_type": "ScaleOut"})
	h.Counter("temporal_request").Inc(2)
	h.Counter("temporal_request").Inc(1)
	h.Timer("temporal_request_latency").Record(7 * time.Millisecond)
	h.Timer("temporal_request_latency_attempt").Record(7 * time.Millisecond)
	h.Counter("temporal_request_attempt").Inc(1)
	h.Gauge("temporal_num_pollers").Update(4)

	require.EqualValues(t, 3, value(t, reg, "temporal_request_total", "operation", "UpdateWorkflowExecution"))
	require.EqualValues(t, 1, value(t, reg, "temporal_request_latency_seconds"))
	require.EqualValues(t, 4, value(t, reg, "temporal_num_pollers"))
	require.Zero(t, series(t, reg, "temporal_request_attempt_total"))
	families, err := reg.Gather()
	require.NoError(t, err)
	require.Len(t, families, 3, "no scope, no target_info, nothing per attempt")
	labels := map[string][]string{}
	for _, f := range families {
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels[f.GetName()] = append(labels[f.GetName()], l.GetName())
		}
		if f.GetName() == "temporal_request_latency_seconds" {
			b := f.GetMetric()[0].GetHistogram().GetBucket()
			require.EqualValues(t, 0, b[0].GetCumulativeCount(), "7ms is above %v", b[0].GetUpperBound())
			require.EqualValues(t, 1, b[1].GetCumulativeCount(), "7ms is below %v", b[1].GetUpperBound())
		}
	}
	require.Equal(t, map[string][]string{
		"temporal_request_total": {"operation"}, "temporal_request_latency_seconds": {"operation"},
		"temporal_num_pollers": {"operation", "workflow_type"},
	}, labels)
}

// Two registries in one process, as in tests, share no metrics.
func TestRegistriesShareNoMetrics(t *testing.T) {
	for range 2 {
		reg := registry.New("v")
		_, err := metrics.Temporal(reg, func(error) {})
		require.NoError(t, err)
		_, err = metrics.NewSteps(reg, &metrics.Clocks{})
		require.NoError(t, err)
	}
}
