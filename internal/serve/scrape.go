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

// scrapeEvery bounds the age of a response to a scrape.
const scrapeEvery = time.Second

// scrapes answers scrapes with the metrics of the last second. All clients get the same bytes, so that neither
// frequent requests nor unread answers cost CPU time, memory or another client's scrape.
type scrapes struct {
	encode http.Handler

	mu     sync.Mutex
	at     time.Time
	answer answer
}

// answer is an encoded answer. It is not changed any more.
type answer struct {
	code   int
	header http.Header
	body   []byte
}

// newScrapes returns the handler of /metrics, in Prometheus's text format.
func newScrapes(of prometheus.Gatherer, own prometheus.Registerer, log *slog.Logger) *scrapes {
	return &scrapes{encode: promhttp.HandlerFor(of, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError,
		ErrorLog: promLog{log}, Registry: own, DisableCompression: true})}
}

// ServeHTTP implements http.Handler. It blocks while the client reads its answer, and holds no lock during that time.
func (s *scrapes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	last := s.current()
	for name, values := range last.header {
		w.Header()[name] = values
	}
	w.WriteHeader(last.code)
	_, _ = w.Write(last.body)
}

// current returns the answer of this second. One caller encodes it, and the other callers wait.
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

// encoded is an http.ResponseWriter into memory.
type encoded struct {
	bytes.Buffer
	answer answer
}

func (e *encoded) Header() http.Header { return e.answer.header }

func (e *encoded) WriteHeader(code int) { e.answer.code = code }

// promLog logs the metrics that promhttp cannot collect.
type promLog struct{ log *slog.Logger }

// Println implements promhttp.Logger.
func (l promLog) Println(v ...any) { l.log.Warn("metrics not collected", "error", fmt.Sprint(v...)) }
