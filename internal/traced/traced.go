// Package traced records the requests that serve a trace as spans of this trace.
package traced

import (
	"net/http"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Transport makes a span of each request whose context has a span, and sends the header traceparent. It leaves all
// other requests unchanged. A span contains method, URL and status, and neither headers nor bodies.
func Transport(web http.RoundTripper) http.RoundTripper {
	return otelhttp.NewTransport(web, otelhttp.WithPropagators(propagation.TraceContext{}),
		otelhttp.WithFilter(func(r *http.Request) bool { return trace.SpanContextFromContext(r.Context()).IsValid() }))
}
