package client

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.temporal.io/sdk/contrib/opentelemetry"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// NewTracing returns an interceptor for clients and their workers. The interceptor puts all spans of one scale-out
// into one trace. Temporal's headers carry a span from a start to the activities of the started workflow. They cannot
// carry a span through an entity, which does the work of many callers in one task. Therefore the fields named Trace
// carry the span from an operation to its instance, and from the instance or a hold to the start of a workflow (see
// Single.Start). Without the interceptor these fields stay empty.
func NewTracing(spans trace.TracerProvider) (interceptor.Interceptor, error) {
	t, err := opentelemetry.NewTracer(opentelemetry.TracerOptions{
		Tracer: spans.Tracer("go.temporal.io/sdk"), TextMapPropagator: propagation.TraceContext{}, DisableBaggage: true,
		DisableSignalTracing: true, DisableQueryTracing: true, AllowInvalidParentSpans: true, SpanStarter: startSpan,
	})
	return interceptor.NewTracingInterceptor(tracer{t}), err
}

// startSpan starts a span for an update, for a start of a workflow, and for each run of an activity. It starts no span
// within a workflow, because a replay would repeat it; the spans of a workflow's activities are children of its start.
// Without a parent span, only the start of a workflow that is not an entity begins a trace.
func startSpan(parent context.Context, t trace.Tracer, name string, opts ...trace.SpanStartOption) trace.Span {
	operation, of, _ := strings.Cut(name, ":")
	traced := trace.SpanContextFromContext(parent).IsValid()
	switch operation {
	case "UpdateWorkflow", "RunActivity":
	case "StartWorkflow":
		traced = traced || of != workflows.TypeNodeGroup && of != workflows.TypeProvider
	default:
		traced = false
	}
	if !traced {
		return trace.SpanFromContext(parent)
	}
	_, span := t.Start(parent, name, opts...)
	return span
}

// tracer adds the trace to log lines only where a trace exists.
type tracer struct{ interceptor.Tracer }

// GetLogger returns the logger with the trace's ids. It returns l when no trace exists.
func (t tracer) GetLogger(l log.Logger, of interceptor.TracerSpanRef) log.Logger {
	if span, ok := of.(trace.Span); ok && span.SpanContext().IsValid() {
		return t.Tracer.GetLogger(l, of)
	}
	return l
}

const traceparent = "traceparent"

// traceOf returns the span of ctx as a W3C traceparent. It returns "" when ctx has no span.
func traceOf(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier[traceparent]
}

// inTrace returns a context that contains ctx and the span that name describes, a result of traceOf. If name is "", it
// returns ctx itself.
func inTrace(ctx context.Context, name string) context.Context {
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{traceparent: name})
}
