package liqo

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A request to the API server of the consumer or of a provider becomes a span of the caller's trace, without the
// request's credentials. Without a trace, the request has neither a span nor a trace header.
func TestRequestsBecomeSpans(t *testing.T) {
	asked := make(chan http.Header, 2)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Header
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}}`))
	}))
	defer server.Close()
	const token = "s3cr3t-token"
	for side, open := range map[string]func(*rest.Config) (client.Client, error){
		"consumer": newConsumerClient, "provider": newProviderClient,
	} {
		t.Run(side, func(t *testing.T) {
			cluster, err := open(&rest.Config{Host: server.URL, BearerToken: token})
			require.NoError(t, err)
			exporter := tracetest.NewInMemoryExporter()
			require.NoError(t, cluster.Get(t.Context(), client.ObjectKey{Name: "n"}, &corev1.Node{}))
			require.Empty(t, (<-asked).Get("Traceparent"))

			ctx, step := trace.NewTracerProvider(trace.WithSyncer(exporter)).Tracer("test").Start(t.Context(), "step")
			require.NoError(t, cluster.Get(ctx, client.ObjectKey{Name: "n"}, &corev1.Node{}))
			header := <-asked
			require.Equal(t, "Bearer "+token, header.Get("Authorization"))
			spans := exporter.GetSpans()
			require.Len(t, spans, 1)
			require.Equal(t, step.SpanContext().SpanID(), spans[0].Parent.SpanID())
			require.Contains(t, header.Get("Traceparent"), spans[0].SpanContext.SpanID().String())
			text, err := json.Marshal(spans)
			require.NoError(t, err)
			require.Contains(t, string(text), "/api/v1/nodes/n")
			require.NotContains(t, string(text), token)
		})
	}
}
