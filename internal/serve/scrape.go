package serve

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// scrapeEvery is the maximum age of the metrics in a response.
const scrapeEvery = time.Second

// scrapes implements http.Handler for scrapes. It encodes the metrics at most once a second, and sends the same bytes
// to all clients. So frequent requests cost little CPU time, and a client that does not read costs little memory and
// does not delay other clients.
type scrapes struct {
	encode http.Handler

	mu     sync.Mutex
	at     time.Time
	answer answer
}

// answer is an encoded response. It does not change after its creation.
type answer struct {
	code   int
	header http.Header
	body   []byte
}

// newScrapes returns a handler that serves the metrics of the Gatherer in Prometheus's text format. The handler
// registers metrics about itself in the parameter own.
func newScrapes(of prometheus.Gatherer, own prometheus.Registerer, log *slog.Logger) *scrapes {
	return &scrapes{encode: promhttp.HandlerFor(of, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError,
		ErrorLog: promLog{log}, Registry: own, DisableCompression: true})}
}

// ServeHTTP implements http.Handler. It may block until the client reads the response. It holds no lock during that
// time.
func (s *scrapes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	last := s.current()
	for name, values := range last.header {
		w.Header()[name] = values
	}
	w.WriteHeader(last.code)
	_, _ = w.Write(last.body)
}

// current returns the last response if it is younger than scrapeEvery. Otherwise the first caller encodes a new
// response, and concurrent callers wait for it.
func (s *scrapes) current() answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.at.IsZero() && time.Since(s.at) < scrapeEvery {
		return s.answer
	}
	plain := &http.Request{Method: http.MethodGet, Header: http.Header{}} // one format for all clients
	into := &encoded{answer: answer{code: http.StatusOK, header: http.Header{}}}
	s.encode.ServeHTTP(into, plain)
	into.answer.body = into.Bytes()
	s.answer, s.at = into.answer, time.Now()
	return s.answer
}

// encoded is an http.ResponseWriter that stores the response in memory.
type encoded struct {
	bytes.Buffer
	answer answer
}

func (e *encoded) Header() http.Header { return e.answer.header }

func (e *encoded) WriteHeader(code int) { e.answer.code = code }

// promLog implements promhttp.Logger. promhttp calls it for each metric that cannot be collected.
type promLog struct{ log *slog.Logger }

// Println implements promhttp.Logger.
func (l promLog) Println(v ...any) { l.log.Warn("cannot collect metrics", "error", fmt.Sprint(v...)) }
