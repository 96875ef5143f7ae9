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

// Times of traces.
const (
	// flushLimit bounds what is exported at the end, when the collector does not answer.
	flushLimit = 3 * time.Second
	// complainEvery is how often the log says so at most.
	complainEvery = 10 * time.Minute
)

// tracesAsked reports whether the standard environment variables of OpenTelemetry ask for traces. Without a word there
// are none, although the standard has them sent to this machine.
func tracesAsked() bool {
	off, _ := strconv.ParseBool(os.Getenv("OTEL_SDK_DISABLED"))
	exporter := os.Getenv("OTEL_TRACES_EXPORTER")
	if off || exporter == "none" {
		return false
	}
	return exporter+os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT")+os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

// openTraces makes what exports traces, in the background, as the environment says; nil when it does not ask for any.
// What a collector does not take is lost, and told to the log at most every complainEvery. End it with endTraces.
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

// endTraces exports what is left, for at most flushLimit.
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

// mutationSpans makes a span of each call of Cluster Autoscaler's that changes a node group: there a trace begins, if
// not with the caller. Reads are many, and answered from memory.
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
