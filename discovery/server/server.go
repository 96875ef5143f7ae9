package server

import (
	"cmp"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store"
)

// Options are what a Server is made of.
type Options struct {
	Store store.Store
	// Writers says who may come in; required.
	Writers Authenticator
	// DefaultTTL is the life of an offer put without expires. Default 24h.
	DefaultTTL time.Duration
	// MaxTTL bounds the life of an offer. Default 30 days.
	MaxTTL time.Duration
	// Log receives one line per request that changes something or fails. Default slog.Default().
	Log *slog.Logger
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Server is the API as an http.Handler.
type Server struct {
	options Options
	mux     *http.ServeMux
}

// New makes a Server.
func New(options Options) (*Server, error) {
	if options.Store == nil || options.Writers == nil {
		return nil, errors.New("make discovery server: the store or the writers are missing")
	}
	options.DefaultTTL = cmp.Or(options.DefaultTTL, 24*time.Hour)
	options.MaxTTL = cmp.Or(options.MaxTTL, 30*24*time.Hour)
	options.Log = cmp.Or(options.Log, slog.Default())
	if options.Now == nil {
		options.Now = time.Now
	}
	s := &Server{options: options, mux: http.NewServeMux()}
	for _, r := range s.routes() {
		s.mux.HandleFunc(r.method+" "+r.path, r.handle)
	}
	return s, nil
}

// route is one operation; a test holds them against openapi.yaml.
type route struct {
	method, path string
	handle       http.HandlerFunc
}

func (s *Server) routes() []route {
	one := api.PathOffers + "/{name}"
	return []route{
		{http.MethodGet, "/healthz", s.healthz},
		{http.MethodGet, "/v1/openapi.yaml", s.openapi},
		{http.MethodGet, api.PathOffers, s.as(reader, s.list)},
		{http.MethodGet, one, s.as(reader, s.get)},
		{http.MethodPut, one, s.as(writer, s.put)},
		{http.MethodDelete, one, s.as(writer, s.remove)},
		{http.MethodPost, api.PathSessions, s.as(writer, s.begin)},
	}
}

// ServeHTTP answers everything in JSON, also what the mux would refuse in plain text.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	refusal, pattern := s.mux.Handler(r)
	if pattern != "" {
		r.Body = http.MaxBytesReader(w, r.Body, api.MaxBody)
		s.mux.ServeHTTP(w, r)
		return
	}
	seen := &refused{header: http.Header{}, status: http.StatusOK}
	refusal.ServeHTTP(seen, r)
	if seen.status == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", seen.header.Get("Allow"))
		s.fail(w, r, problem(http.StatusMethodNotAllowed, "", "%s is not a method of this path", r.Method))
		return
	}
	s.fail(w, r, problem(http.StatusNotFound, "",
		"there is nothing at this path; the API is described at /v1/openapi.yaml"))
}

// refused keeps the head of the mux's own refusals and drops the text.
type refused struct {
	header http.Header
	status int
}

func (r *refused) Header() http.Header         { return r.header }
func (r *refused) WriteHeader(status int)      { r.status = status }
func (r *refused) Write(b []byte) (int, error) { return len(b), nil }

func (s *Server) healthz(w http.ResponseWriter, r *http.Request) {
	if _, err := s.options.Store.List(r.Context(), "", 1, s.options.Now()); err != nil {
		s.fail(w, r, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
