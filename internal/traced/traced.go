// Package traced records HTTP requests as spans. A span belongs to the trace in the context of its request.
package traced

import (
	"net/http"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Transport returns a RoundTripper. For each request whose context has a span, it creates a span and adds the header
// traceparent to the request. It passes all other requests unchanged to the RoundTripper web. The new span contains
// the method, the URL and the status, but no headers and no bodies.
func Transport(web http.RoundTripper) http.RoundTripper {
	return otelhttp.NewTransport(web, otelhttp.WithPropagators(propagation.TraceContext{}),
		otelhttp.WithFilter(func(r *http.Request) bool { return trace.SpanContextFromContext(r.Context()).IsValid() }))
}
