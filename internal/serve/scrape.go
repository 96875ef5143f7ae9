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

// scrapeEvery bounds the age of the metrics in a response.
const scrapeEvery = time.Second

// scrapes implements http.Handler for scrapes. It encodes the metrics at most once a second, and all clients receive
// these bytes. So neither frequent requests nor clients that do not read cost CPU time or memory, or delay other
// clients.
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

// newScrapes returns a handler that serves the metrics of the Gatherer in Prometheus's text format. It registers
// metrics about itself in own.
func newScrapes(of prometheus.Gatherer, own prometheus.Registerer, log *slog.Logger) *scrapes {
	return &scrapes{encode: promhttp.HandlerFor(of, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError,
		ErrorLog: promLog{log}, Registry: own, DisableCompression: true})}
}

// ServeHTTP implements http.Handler. It blocks while the client reads the response, and holds no lock during that time.
func (s *scrapes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	last := s.current()
	for name, values := range last.header {
		w.Header()[name] = values
	}
	w.WriteHeader(last.code)
	_, _ = w.Write(last.body)
}

// current returns the response of this second. The first caller of a second encodes it, and concurrent callers wait for
// that.
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

// promLog implements promhttp.Logger, which promhttp calls for each metric that it cannot collect.
type promLog struct{ log *slog.Logger }

// Println implements promhttp.Logger.
func (l promLog) Println(v ...any) { l.log.Warn("cannot collect metrics", "error", fmt.Sprint(v...)) }
