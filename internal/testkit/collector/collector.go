// Package collector implements a collector of OpenTelemetry traces for tests.
package collector

import (
	"context"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	otlp "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// Traces holds the spans that an OTLP collector has received over HTTP or gRPC.
type Traces struct {
	otlp.UnimplementedTraceServiceServer
	mu    sync.Mutex
	spans []testkit.Span
}

// ServeHTTP implements http.Handler.
func (c *Traces) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var sent otlp.ExportTraceServiceRequest
	if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &sent) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	_, _ = c.Export(r.Context(), &sent)
}

// Export implements TraceServiceServer.
func (c *Traces) Export(_ context.Context,
	sent *otlp.ExportTraceServiceRequest) (*otlp.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, from := range sent.GetResourceSpans() {
		for _, by := range from.GetScopeSpans() {
			for _, s := range by.GetSpans() {
				c.spans = append(c.spans, testkit.Span{Trace: hex.EncodeToString(s.GetTraceId()), Name: s.GetName(),
					ID: hex.EncodeToString(s.GetSpanId()), Parent: hex.EncodeToString(s.GetParentSpanId())})
			}
		}
	}
	return &otlp.ExportTraceServiceResponse{}, nil
}

// Lineages returns the result of testkit.Lineages for the received spans.
func (c *Traces) Lineages() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return testkit.Lineages(c.spans)
}

// Collect starts a collector. It also sets the standard environment variable for the address of a collector, so that
// code in this process exports its traces to this collector. The collector stops when the test ends.
func Collect(t *testing.T) *Traces {
	t.Helper()
	c := &Traces{}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	return c
}
