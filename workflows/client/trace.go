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

// NewTracing makes the interceptor of clients and their workers that gives one scale-out one trace. Temporal's headers
// carry a span from a start to the activities of what was started. They cannot carry it through an entity, which does
// the work of many callers in one task: there the fields Trace do, from an operation by way of the instance, and from a
// hold, to the start (see Single.Start). Without the interceptor nothing of this is written.
func NewTracing(spans trace.TracerProvider) (interceptor.Interceptor, error) {
	t, err := opentelemetry.NewTracer(opentelemetry.TracerOptions{
		Tracer: spans.Tracer("go.temporal.io/sdk"), TextMapPropagator: propagation.TraceContext{}, DisableBaggage: true,
		DisableSignalTracing: true, DisableQueryTracing: true, AllowInvalidParentSpans: true, SpanStarter: startSpan,
	})
	return interceptor.NewTracingInterceptor(tracer{t}), err
}

// startSpan makes a span of an update, of a start, and of each run of an activity. It makes none within a workflow,
// whose replay would make it again: what a workflow does is a child of its start. Where nothing is traced, a trace
// begins only with the start of a workflow that ends.
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

// tracer names the trace in the log lines of what is traced alone.
type tracer struct{ interceptor.Tracer }

// GetLogger implements interceptor.Tracer.
func (t tracer) GetLogger(l log.Logger, of interceptor.TracerSpanRef) log.Logger {
	if span, ok := of.(trace.Span); ok && span.SpanContext().IsValid() {
		return t.Tracer.GetLogger(l, of)
	}
	return l
}

const traceparent = "traceparent"

// traceOf is the span that ctx is in, as a W3C traceparent; "" when it is in none.
func traceOf(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier[traceparent]
}

// inTrace is ctx in the span that traceOf has named; ctx itself when there is none.
func inTrace(ctx context.Context, name string) context.Context {
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{traceparent: name})
}
