package server

import (
	"net/http"
	"strconv"

	"github.com/felixge/httpsnoop"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

func newMetrics(namespace string, registry prometheus.Registerer) *prometheus.HistogramVec {
	return promauto.With(registry).NewHistogramVec(prometheus.HistogramOpts{
		Namespace: namespace, Name: "discovery_request_seconds",
		Help: "Time to answer a request, by operation and HTTP status; 429 means that a writer's request limit is reached, " +
			"503 that the store does not answer.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5},
	}, []string{"operation", "status"})
}

// measured returns the route's handler with metrics that count its requests.
func (s *Server) measured(r route) http.HandlerFunc {
	return func(w http.ResponseWriter, request *http.Request) {
		m := httpsnoop.CaptureMetrics(r.handle, w, request)
		s.answered.WithLabelValues(r.name, strconv.Itoa(m.Code)).Observe(m.Duration.Seconds())
	}
}
