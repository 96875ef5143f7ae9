// Package traced has the requests that somebody waits for appear in his trace.
package traced

import (
	"net/http"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Transport makes a span of each request whose context is in one, and passes it on by the header traceparent. All other
// requests are left as they are. A span has method, URL and status, and neither headers nor bodies.
func Transport(web http.RoundTripper) http.RoundTripper {
	return otelhttp.NewTransport(web, otelhttp.WithPropagators(propagation.TraceContext{}),
		otelhttp.WithFilter(func(r *http.Request) bool { return trace.SpanContextFromContext(r.Context()).IsValid() }))
}
