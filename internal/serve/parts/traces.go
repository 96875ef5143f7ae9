package parts

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path"
	"strconv"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	"golang.org/x/time/rate"
	"google.golang.org/grpc/stats"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli"
)

// These constants limit the export of traces and its log lines.
const (
	// flushLimit is the maximum duration of the last export.
	flushLimit = 3 * time.Second
	// logInterval is the minimum interval between two log lines about lost traces.
	logInterval = 10 * time.Minute
)

// tracesConfigured reports whether OpenTelemetry's standard environment variables configure traces. Otherwise traces
// are disabled. OpenTelemetry's default is different: without configuration it exports traces to a collector on this
// machine.
func tracesConfigured() bool {
	off, _ := strconv.ParseBool(os.Getenv("OTEL_SDK_DISABLED"))
	exporter := os.Getenv("OTEL_TRACES_EXPORTER")
	if off || exporter == "none" {
		return false
	}
	return exporter+os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT")+os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

// openTraces returns a provider that exports traces in the background, as the environment variables configure it. It
// returns nil if they do not configure traces. Traces that the collector does not accept are lost; the provider logs
// this at most once in logInterval. The caller must call endTraces.
func openTraces(log *slog.Logger) (*trace.TracerProvider, error) {
	if !tracesConfigured() {
		return nil, nil
	}
	sometimes := rate.Sometimes{Interval: logInterval}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		sometimes.Do(func() { log.Warn("traces may be lost; this is logged every ten minutes at most", "error", err) })
	}))
	ctx := context.Background()
	exporter, err := newExporter(ctx)
	if err != nil {
		return nil, fmt.Errorf("export traces: %w", err)
	}
	us, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(
		attribute.String("service.name", "liqo-autoscaler"), attribute.String("service.version", cli.Version)),
		resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("export traces: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return trace.NewTracerProvider(trace.WithBatcher(exporter), trace.WithResource(us)), nil
}

// newExporter returns the exporter that the environment variables name; the default is OTLP over HTTP.
// OpenTelemetry's package autoexport does the same, but would also compile the exporters of metrics and logs into the
// program.
func newExporter(ctx context.Context) (trace.SpanExporter, error) {
	const general, ofTraces = "OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
	switch name := cmp.Or(os.Getenv("OTEL_TRACES_EXPORTER"), "otlp"); name {
	case "console":
		return stdouttrace.New()
	case "otlp":
	default:
		return nil, fmt.Errorf("OTEL_TRACES_EXPORTER is %q: use otlp, console or none", name)
	}
	switch protocol := cmp.Or(os.Getenv(ofTraces), os.Getenv(general), "http/protobuf"); protocol {
	case "grpc":
		return otlptracegrpc.New(ctx)
	case "http/protobuf":
		return otlptracehttp.New(ctx)
	default:
		return nil, fmt.Errorf("%s or %s is %q: use http/protobuf or grpc", ofTraces, general, protocol)
	}
}

// endTraces exports the remaining traces and closes the provider. It blocks for at most flushLimit.
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

// mutationSpans returns a handler that creates a span for each RPC that changes a node group. If the caller has sent
// a trace context, the span belongs to this trace. Otherwise it starts a new trace. RPCs that only read have no
// spans: they are frequent, and the server answers them from memory.
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
