package parts

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path"
	"strconv"
	"time"

	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	"golang.org/x/time/rate"
	"google.golang.org/grpc/stats"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli"
)

// These are the times of traces.
const (
	// flushLimit bounds the last export, when the collector does not respond.
	flushLimit = 3 * time.Second
	// complainEvery is the shortest time between two log lines about lost traces.
	complainEvery = 10 * time.Minute
)

// tracesAsked reports whether OpenTelemetry's standard environment variables configure traces. Without these variables
// traces are off, although the standard's default exports them to this machine.
func tracesAsked() bool {
	off, _ := strconv.ParseBool(os.Getenv("OTEL_SDK_DISABLED"))
	exporter := os.Getenv("OTEL_TRACES_EXPORTER")
	if off || exporter == "none" {
		return false
	}
	return exporter+os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT")+os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

// openTraces returns a provider that exports traces in the background, configured by the environment; nil without
// configuration. Traces that the collector does not accept are lost, and logged at most every complainEvery. Close it
// with endTraces.
func openTraces(log *slog.Logger) (*trace.TracerProvider, error) {
	if !tracesAsked() {
		return nil, nil
	}
	sometimes := rate.Sometimes{Interval: complainEvery}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		sometimes.Do(func() { log.Warn("traces may be lost; this is said every ten minutes at most", "error", err) })
	}))
	ctx := context.Background()
	exporter, err := autoexport.NewSpanExporter(ctx)
	if err != nil {
		return nil, fmt.Errorf("export traces: %w: see OTEL_TRACES_EXPORTER and OTEL_EXPORTER_OTLP_PROTOCOL", err)
	}
	us, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(
		attribute.String("service.name", "liqo-autoscaler"), attribute.String("service.version", cli.Version)),
		resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("export traces: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return trace.NewTracerProvider(trace.WithBatcher(exporter), trace.WithResource(us)), nil
}

// endTraces exports the remaining traces, for at most flushLimit.
func endTraces(t *trace.TracerProvider) {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushLimit)
	defer cancel()
	if err := t.Shutdown(ctx); err != nil {
		otel.Handle(err)
	}
}

// mutationSpans makes a span of each call from Cluster Autoscaler that changes a node group. A trace begins there,
// unless the caller has begun it. Reads have no spans: they are frequent, and served from memory.
func mutationSpans(t *trace.TracerProvider) stats.Handler {
	return otelgrpc.NewServerHandler(otelgrpc.WithTracerProvider(t), otelgrpc.WithPropagators(propagation.TraceContext{}),
		otelgrpc.WithFilter(func(call *stats.RPCTagInfo) bool {
			switch path.Base(call.FullMethodName) {
			case "NodeGroupIncreaseSize", "NodeGroupDecreaseTargetSize", "NodeGroupDeleteNodes":
				return true
			}
			return false
		}))
}
