package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/logonce"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// Options configures a Server.
type Options struct {
	Store store.Store
	// Writers authenticates the clients; required.
	Writers Authenticator
	// ClientAuthorities are the authorities that sign the certificates of clients. If nil, clients have only tokens.
	ClientAuthorities *Authorities
	// Log receives one line for each write, even if it is refused, and for each read that fails. Default
	// slog.Default().
	Log *slog.Logger
	// Rate bounds the number of requests per second of each writer. For requests that are not authenticated, it
	// bounds the number per address. A burst may have ten times as many requests. 0 means no bound.
	Rate float64
	// Registry receives the metrics; nil disables metrics. The names of the metrics begin with Namespace.
	Registry  prometheus.Registerer
	Namespace string
}

// Server is the http.Handler of the API.
type Server struct {
	options           Options
	mux               *http.ServeMux
	limits, strangers limits
	refused           logonce.EachSecond // counts requests of unknown clients and requests that exceed a limit
	ready             func(context.Context) error
	verified          certificates
	answered          *prometheus.HistogramVec
}

// New returns a Server.
func New(options Options) (*Server, error) {
	if options.Store == nil || options.Writers == nil {
		return nil, errors.New("make discovery server: the store or the writers are missing")
	}
	if options.Rate < 0 {
		return nil, fmt.Errorf("make discovery server: the rate of %v requests per second is negative", options.Rate)
	}
	options.Log = cmp.Or(options.Log, slog.Default())
	s := &Server{options: options, mux: http.NewServeMux(), answered: newMetrics(options.Namespace, options.Registry)}
	s.ready = wait.Rarely(s.storeAnswers)
	s.limits.rate, s.strangers.rate, s.strangers.most = rate.Limit(options.Rate), rate.Limit(options.Rate), maxAddresses
	for _, r := range s.routes() {
		s.mux.HandleFunc(r.method+" "+r.path, s.measured(r))
	}
	return s, nil
}

// route describes one operation of the API. A test compares the routes with openapi.yaml.
type route struct {
	name, method, path string
	handle             http.HandlerFunc
}

func (s *Server) routes() []route {
	one := api.PathOffers + "/{name}"
	return []route{
		{"health", http.MethodGet, "/healthz", s.healthz},
		{"ready", http.MethodGet, "/readyz", s.readyz},
		{"openapi", http.MethodGet, "/v1/openapi.yaml", s.openapi},
		{"list", http.MethodGet, api.PathOffers, s.as(reader, s.list)},
		{"get", http.MethodGet, one, s.as(reader, s.get)},
		{"put", http.MethodPut, one, s.as(writer, s.put)},
		{"delete", http.MethodDelete, one, s.as(writer, s.remove)},
		{"begin", http.MethodPost, api.PathSessions, s.as(writer, s.begin)},
	}
}

// storeLimit bounds the time of a request after its headers have been read.
const storeLimit = 8 * time.Second

// ServeHTTP always replies in JSON. Instead of the plain-text errors of http.ServeMux it sends problem documents.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	refusal, pattern := s.mux.Handler(r)
	// The mux would redirect a path that is not clean, such as //v1. Below, this server replies 404 to it.
	if asked := r.URL.EscapedPath(); pattern != "" && path.Clean(asked) == asked {
		ctx, cancel := context.WithTimeout(r.Context(), storeLimit)
		defer cancel()
		r.Body = http.MaxBytesReader(w, r.Body, api.MaxBody)
		s.mux.ServeHTTP(w, r.WithContext(ctx))
		return
	}
	seen := &refused{header: http.Header{}, status: http.StatusOK}
	refusal.ServeHTTP(seen, r)
	if seen.status == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", seen.header.Get("Allow"))
		s.fail(w, r, problem(http.StatusMethodNotAllowed, "", "the method %s is not supported by this path", r.Method))
		return
	}
	s.fail(w, r, problem(http.StatusNotFound, "",
		"this path does not exist; the API is described at /v1/openapi.yaml"))
}

// refused is an http.ResponseWriter that records the status and the headers of an error reply by the mux, and
// discards the text.
type refused struct {
	header http.Header
	status int
}

func (r *refused) Header() http.Header         { return r.header }
func (r *refused) WriteHeader(status int)      { r.status = status }
func (r *refused) Write(b []byte) (int, error) { return len(b), nil }

func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }

func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	if err := s.Ready(r.Context()); err != nil {
		s.fail(w, r, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// Ready returns an error while the store does not respond. It makes at most one query a second to the store.
func (s *Server) Ready(ctx context.Context) error { return s.ready(ctx) }

func (s *Server) storeAnswers(ctx context.Context) error {
	now, err := s.options.Store.Now(ctx)
	if err == nil {
		_, err = s.options.Store.List(ctx, store.Query{Limit: 1}, now)
	}
	return err
}
