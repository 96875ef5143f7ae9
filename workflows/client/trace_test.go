package client

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// A trace begins with a call of Cluster Autoscaler, or with the start of a workflow that is not an entity. It
// continues in updates, starts and activities. Workflow code creates no span, because each replay would create the
// span again.
func TestWorkflowCodeCreatesNoSpan(t *testing.T) {
	tracer := sdktrace.NewTracerProvider().Tracer("")
	traced, span := tracer.Start(t.Context(), "a call")
	defer span.End()
	for name, c := range map[string]struct{ traced, untraced bool }{
		"StartWorkflow:ScaleOut":   {traced: true, untraced: true},
		"StartWorkflow:Undo":       {traced: true, untraced: true},
		"StartWorkflow:NodeGroup":  {traced: true},
		"StartWorkflow:Provider":   {traced: true},
		"UpdateWorkflow:grow":      {traced: true},
		"RunActivity:Join":         {traced: true},
		"RunWorkflow:ScaleOut":     {},
		"StartActivity:Join":       {},
		"SignalWorkflow:order":     {},
		"StartChildWorkflow:Other": {},
	} {
		for parent, want := range map[context.Context]bool{traced: c.traced, t.Context(): c.untraced} {
			before := trace.SpanContextFromContext(parent)
			got := startSpan(parent, tracer, name).SpanContext()
			require.Equal(t, want, !got.Equal(before), name)
			if want && before.IsValid() {
				require.Equal(t, before.TraceID(), got.TraceID(), name)
			}
		}
	}
}

// Entities forward a span as text; the receiver decodes the same span.
func TestSpanSurvivesItsTextForm(t *testing.T) {
	ctx, span := sdktrace.NewTracerProvider().Tracer("").Start(t.Context(), "a call")
	defer span.End()
	name := traceOf(ctx)
	require.Contains(t, name, span.SpanContext().TraceID().String())
	got := trace.SpanContextFromContext(inTrace(t.Context(), name))
	require.Equal(t, span.SpanContext().TraceID(), got.TraceID())
	require.Equal(t, span.SpanContext().SpanID(), got.SpanID())
	require.Equal(t, name, traceOf(inTrace(t.Context(), name)))
	require.Empty(t, traceOf(t.Context()))
	require.Empty(t, traceOf(inTrace(t.Context(), "")))

	_, err := NewTracing(sdktrace.NewTracerProvider())
	require.NoError(t, err)
}

// Operations and requests for a hold carry the span of their caller. Other messages to a provider create no object, so
// they carry no span.
func TestOperationsAndAcquiresCarryTheSpan(t *testing.T) {
	ctx, span := sdktrace.NewTracerProvider().Tracer("").Start(t.Context(), "a call")
	defer span.End()
	requests := []fleet.HoldRequest{{Kind: fleet.HoldAcquire, Key: "a"}, {Kind: fleet.HoldRelease, Key: "b"},
		{Kind: fleet.HoldAcquire, Key: "c"}}
	for at, name := range map[context.Context]string{t.Context(): "", ctx: traceOf(ctx)} {
		n, r := &namespace{}, &refuser{}
		require.NoError(t, NewMessages(n, "", "").Holds(at, "milan", requests...))
		sent := n.calls[0].args[0].([]fleet.HoldRequest)
		require.Equal(t, []string{name, "", name}, []string{sent[0].Trace, sent[1].Trace, sent[2].Trace})
		require.Equal(t, []string{"a", "b", "c"}, []string{sent[0].Key, sent[1].Key, sent[2].Key})
		require.Empty(t, requests[0].Trace, "the caller's own are left alone")
		_, err := NewGroups(r, "", "").Grow(at, "gpu", 1, 0, fleet.Position{})
		require.NoError(t, err)
		require.Equal(t, name, r.traces[0])
	}
}
