package server

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func newMetrics(namespace string, registry prometheus.Registerer) *prometheus.HistogramVec {
	answered := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: namespace, Name: "discovery_request_seconds",
		Help: "Time to answer a request, by operation and HTTP status; 429 is the limit of a writer's requests, 503 a " +
			"store that does not answer.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5},
	}, []string{"operation", "status"})
	if registry != nil {
		registry.MustRegister(answered)
	}
	return answered
}

// measured is the route's handler.
func (s *Server) measured(r route) http.HandlerFunc {
	return func(w http.ResponseWriter, request *http.Request) {
		began, head := time.Now(), &head{ResponseWriter: w, status: http.StatusOK}
		r.handle(head, request)
		s.answered.WithLabelValues(r.name, strconv.Itoa(head.status)).Observe(time.Since(began).Seconds())
	}
}

// head remembers the status.
type head struct {
	http.ResponseWriter
	status int
}

func (h *head) WriteHeader(status int) {
	h.status = status
	h.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (h *head) Unwrap() http.ResponseWriter { return h.ResponseWriter }
