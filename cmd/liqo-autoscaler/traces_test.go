package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// collected are the spans that an OTLP collector was sent, over HTTP or gRPC.
type collected struct {
	collector.UnimplementedTraceServiceServer
	mu    sync.Mutex
	spans []testkit.Span
}

func (c *collected) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var sent collector.ExportTraceServiceRequest
	if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &sent) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	_, _ = c.Export(r.Context(), &sent)
}

// Export implements collector.TraceServiceServer.
func (c *collected) Export(_ context.Context,
	sent *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
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
	return &collector.ExportTraceServiceResponse{}, nil
}

func (c *collected) lineages() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return testkit.Lineages(c.spans)
}

// collect has this process export traces to a collector by nothing but the standard variable.
func collect(t *testing.T) *collected {
	t.Helper()
	c := &collected{}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	return c
}

func TestTracesAreAskedFor(t *testing.T) {
	for given, want := range map[string]bool{
		"": false,
		"OTEL_SERVICE_NAME=x OTEL_TRACES_SAMPLER=always_on":                       false,
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318":                               true,
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://c:4318/v1/traces":              true,
		"OTEL_TRACES_EXPORTER=console":                                            true,
		"OTEL_TRACES_EXPORTER=none OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318":     false,
		"OTEL_SDK_DISABLED=true OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318":        false,
		"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=http://c:4318 OTEL_SDK_DISABLED=off": false,
	} {
		t.Run(given, func(t *testing.T) {
			for pair := range strings.FieldsSeq(given) {
				name, value, _ := strings.Cut(pair, "=")
				t.Setenv(name, value)
			}
			traces, err := openTraces(quiet)
			require.NoError(t, err)
			require.Equal(t, want, traces != nil)
			endTraces(traces)
		})
	}
	for name, value := range map[string]string{
		"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json", "OTEL_TRACES_EXPORTER": "pigeon",
	} {
		t.Run(value, func(t *testing.T) {
			t.Setenv("OTEL_TRACES_EXPORTER", "otlp")
			t.Setenv(name, value)
			_, err := openTraces(quiet)
			require.ErrorContains(t, err, name)
		})
	}
}

// A collector may take gRPC alone.
func TestTracesOverGRPC(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var c collected
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, &c)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+l.Addr().String())
	traces, err := openTraces(quiet)
	require.NoError(t, err)
	_, span := traces.Tracer("test").Start(t.Context(), "over gRPC")
	span.End()
	require.NoError(t, traces.ForceFlush(t.Context()))
	endTraces(traces)
	require.Equal(t, []string{"over gRPC"}, c.lineages())
}

// A collector that takes nothing costs its traces, and one line of the log, however often it is tried.
func TestCollectorThatTakesNothing(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusForbidden)
	}))
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "1") // milliseconds
	var out testkit.Buffer
	traces, err := openTraces(slog.New(slog.NewTextHandler(&out, nil)))
	require.NoError(t, err)
	testkit.Until(t, time.Minute, "it is tried again", func() error {
		_, span := traces.Tracer("test").Start(t.Context(), "span")
		span.End()
		if n := asked.Load(); n < 4 {
			return fmt.Errorf("it was asked %d times", n)
		}
		return nil
	})
	endTraces(traces)
	require.Equal(t, 1, strings.Count(out.String(), "traces may be lost"), "%s", &out)
}
