package metrics

import (
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/opentelemetry"
)

// sdkSeconds holds the bounds of the SDK's histograms in seconds: calls take milliseconds, workflows minutes.
var sdkSeconds = []float64{.005, .01, .025, .1, .5, 1, 5, 15, 60, 300, 900}

// Temporal returns the handler for client.Options.MetricsHandler, and registers the SDK's metrics under their
// documented names temporal_*. Counters end in _total, and latencies are in seconds. When the handler cannot create a
// metric, it calls onError and omits the metric.
func Temporal(reg prometheus.Registerer, onError func(error)) (client.MetricsHandler, error) {
	reader, err := exporter.New(exporter.WithRegisterer(reg), exporter.WithoutScopeInfo(), exporter.WithoutTargetInfo())
	if err != nil {
		return nil, fmt.Errorf("make metrics of the Temporal SDK: %w", err)
	}
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithView(sdkView))
	return opentelemetry.NewMetricsHandler(opentelemetry.MetricsHandlerOptions{
		Meter: provider.Meter("temporal-sdk-go"), OnError: onError, UseMonotonicCounters: true,
	}), nil
}

// sdkView reduces the size of a scrape. It keeps only four labels of the metrics of requests to Temporal
// (temporal_request* and temporal_long_request*). It drops the additional metrics that the SDK has for the attempts of
// a request (*_attempt).
func sdkView(i sdkmetric.Instrument) (sdkmetric.Stream, bool) {
	s := sdkmetric.Stream{Name: i.Name, Description: i.Description, Unit: i.Unit,
		AttributeFilter: attribute.NewDenyKeysFilter("client_name")}
	if i.Kind == sdkmetric.InstrumentKindHistogram {
		s.Aggregation = sdkmetric.AggregationExplicitBucketHistogram{Boundaries: sdkSeconds}
	}
	if strings.HasPrefix(i.Name, "temporal_request") || strings.HasPrefix(i.Name, "temporal_long_request") {
		s.AttributeFilter = attribute.NewAllowKeysFilter("namespace", "operation", "status_code", "cause")
	}
	if strings.Contains(i.Name, "request") && strings.HasSuffix(i.Name, "_attempt") {
		s.Aggregation = sdkmetric.AggregationDrop{}
	}
	return s, true
}
