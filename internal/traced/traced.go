// Package traced records HTTP requests as spans of the trace in their context.
package traced

import (
	"net/http"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Transport returns a RoundTripper that creates a span for each request whose context has a span, and adds the header
// traceparent to the request. It passes all other requests to web unchanged. A span contains method, URL and status,
// but no headers and no bodies.
func Transport(web http.RoundTripper) http.RoundTripper {
	return otelhttp.NewTransport(web, otelhttp.WithPropagators(propagation.TraceContext{}),
		otelhttp.WithFilter(func(r *http.Request) bool { return trace.SpanContextFromContext(r.Context()).IsValid() }))
}
