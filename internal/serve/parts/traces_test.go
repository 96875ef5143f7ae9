package parts

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	otlp "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/collector"
)

func TestTracesNeedAnEndpoint(t *testing.T) {
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

// Traces can be exported to a collector that accepts only gRPC.
func TestTracesOverGRPC(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var c collector.Traces
	server := grpc.NewServer()
	otlp.RegisterTraceServiceServer(server, &c)
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
	require.Equal(t, []string{"over gRPC"}, c.Lineages())
}

// A collector refuses all traces. The traces are lost, and only one line is logged for all failed attempts.
func TestRefusingCollectorIsLoggedOnce(t *testing.T) {
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
			return fmt.Errorf("it received %d requests", n)
		}
		return nil
	})
	endTraces(traces)
	require.Equal(t, 1, strings.Count(out.String(), "traces may be lost"), "%s", &out)
}
