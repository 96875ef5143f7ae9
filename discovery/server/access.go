package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"log/slog"
	"math"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connlimit"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
)

type role int

const (
	reader role = iota
	writer
)

// operation handles a request. The result `did` is the effect of a write, for the log.
type operation func(http.ResponseWriter, *http.Request, Writer) (did string, err error)

// as returns a handler that runs an operation if the client has the required role. The handler logs each write and
// each failed read.
func (s *Server) as(need role, do operation) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		who, err := s.admit(w, r, need)
		did := ""
		if err == nil {
			did, err = do(w, r, who)
		}
		switch {
		case err != nil:
			s.failFor(w, r, who.Name, err)
		case need == writer:
			level := slog.LevelInfo
			if did == renewed {
				level = slog.LevelDebug // renewals are frequent
			}
			s.options.Log.Log(r.Context(), level, "write accepted", append(requestAttrs(r, who.Name), "did", did)...)
		}
	}
}

// requestAttrs returns the log attributes of a request by a client.
func requestAttrs(r *http.Request, who string) []any {
	attributes := []any{"method", r.Method, "path", shorten.To(r.URL.Path, 200), "writer", who, "from", r.RemoteAddr}
	for _, name := range []string{api.ParamSession, api.ParamSequence} {
		if value := r.URL.Query().Get(name); value != "" {
			attributes = append(attributes, name, shorten.To(value, 40))
		}
	}
	return attributes
}

// admit authenticates the client, and checks the client's request rate and role. The error is the reason for which
// the request is refused.
func (s *Server) admit(w http.ResponseWriter, r *http.Request, need role) (who Writer, err error) {
	address, _, _ := net.SplitHostPort(r.RemoteAddr)
	of, key, what := &s.strangers, address, "this address makes, without a known token or certificate,"
	wait := 0
	if chain := chainOf(r); len(chain) > 0 && !s.verified.has(chain[0]) { // the first verification is expensive
		wait = s.strangers.wait(address)
	}
	if wait == 0 {
		if who, err = s.identify(r); err == nil {
			connlimit.KeepFrom(r.Context())
			of, key, what = &s.limits, who.Name, "this token makes"
		}
		wait = of.reserve(key)
	}
	if wait > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(wait))
		return who, problem(http.StatusTooManyRequests, "",
			"%s more than %v requests a second; try again in %d s", what, s.options.Rate, wait)
	}
	if err != nil {
		w.Header().Set("WWW-Authenticate", `Bearer realm="liqo-autoscaler discovery"`)
		return who, err
	}
	if need == writer && !who.mayWrite() {
		return who, problem(http.StatusForbidden, "", "this client may not write")
	}
	return who, nil
}

// identify returns the client by its token or, without a token, by its certificate.
func (s *Server) identify(r *http.Request) (Writer, error) {
	scheme, token, given := strings.Cut(r.Header.Get("Authorization"), " ")
	if chain := chainOf(r); !given && s.options.ClientAuthorities != nil && len(chain) > 0 {
		uris, err := s.options.ClientAuthorities.verify(chain, time.Now())
		if err != nil {
			return Writer{}, problem(http.StatusUnauthorized, "", "%v", err)
		}
		if who, ok := s.options.Writers.Current().certified(uris); ok {
			s.verified.add(chain[0])
			return who, nil
		}
		return Writer{}, problem(http.StatusUnauthorized, "",
			"no writer has one of the client certificate's URIs %v; was the writer removed?", uris)
	}
	if strings.EqualFold(scheme, "Bearer") && token != "" {
		if who, ok := s.options.Writers.Current().Authenticate(strings.TrimSpace(token)); ok {
			return who, nil
		}
	}
	return Writer{}, problem(http.StatusUnauthorized, "",
		"send Authorization: Bearer <token> with a token this server knows")
}

// chainOf returns the certificate chain that the client has sent. The chain is not verified.
func chainOf(r *http.Request) []*x509.Certificate {
	if r.TLS == nil {
		return nil
	}
	return r.TLS.PeerCertificates
}

// certificates stores the certificates of admitted clients. Requests of these clients do not count towards the rate
// limit of their address. Therefore an unknown client at the same address cannot block them. The server still
// verifies the certificate for each request. The zero value is empty.
type certificates struct {
	mu    sync.Mutex
	known map[[sha256.Size]byte]bool
}

func (c *certificates) has(of *x509.Certificate) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known[sha256.Sum256(of.Raw)]
}

func (c *certificates) add(of *x509.Certificate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil || len(c.known) >= maxAddresses {
		c.known = map[[sha256.Size]byte]bool{}
	}
	c.known[sha256.Sum256(of.Raw)] = true
}

// inForce returns a function that reports whether an offer is valid for the present writers. If the client is not a
// writer any more, inForce returns an error instead. This can happen during a request, because a fault in the writers
// file removes all writers. The server must then not treat any offer as invalid.
func (s *Server) inForce(who Writer) (func(store.Record) bool, error) {
	writers := s.options.Writers.Current()
	if !slices.ContainsFunc(writers, func(w Writer) bool { return w.Name == who.Name }) {
		return nil, problem(http.StatusUnauthorized, "", "this server no longer knows the client")
	}
	return inForce(writers), nil
}

// maxAddresses bounds the number of addresses whose requests are counted separately. The requests of all further
// addresses are counted together.
const maxAddresses = 1000

// limits bounds the request rate of each writer or of each address.
type limits struct {
	rate rate.Limit // 0: no bound
	most int        // number of separate counts; 0: no bound
	mu   sync.Mutex
	of   map[string]*rate.Limiter
}

// reserve counts a request and returns 0. If the limit is reached, reserve does not count the request, and returns
// the number of seconds until the next request is permitted.
func (l *limits) reserve(who string) (seconds int) {
	if l.rate == 0 {
		return 0
	}
	if turn := l.limiter(who).Reserve(); turn.Delay() > 0 {
		seconds = int(math.Ceil(turn.Delay().Seconds()))
		turn.Cancel()
	}
	return seconds
}

// wait returns the same result as reserve, but does not count the request.
func (l *limits) wait(who string) (seconds int) {
	if l.rate == 0 {
		return 0
	}
	lacks := 1 - l.limiter(who).Tokens()
	return int(math.Ceil(max(0, lacks) / float64(l.rate)))
}

// limiter returns the rate limiter of a writer or an address, and creates it if needed.
func (l *limits) limiter(who string) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of[who] == nil && l.most > 0 && len(l.of) >= l.most {
		who = ""
	}
	limiter := l.of[who]
	if limiter == nil {
		if l.of == nil {
			l.of = map[string]*rate.Limiter{}
		}
		limiter = rate.NewLimiter(l.rate, max(1, int(10*l.rate)))
		l.of[who] = limiter
	}
	return limiter
}

func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) { s.failFor(w, r, "", err) }

// failFor replies with the error, and logs it. For refused requests of unknown clients, and for requests that exceed
// a limit, it logs at most one line a second. The line contains the number of such requests that were not logged.
func (s *Server) failFor(w http.ResponseWriter, r *http.Request, who string, err error) {
	p := translate(err)
	level, cause, what := slog.LevelInfo, error(p), "request refused"
	if p.Status >= http.StatusInternalServerError {
		level, cause = slog.LevelError, err
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		what = "write refused"
	}
	attributes := append(requestAttrs(r, cmp.Or(who, "unknown")), "status", p.Status, "error", cause)
	tell := true
	if who == "" && level == slog.LevelInfo || p.Status == http.StatusTooManyRequests {
		var untold int
		untold, tell = s.refused.Next()
		attributes = append(attributes, "more", untold)
	}
	if tell {
		s.options.Log.Log(context.WithoutCancel(r.Context()), level, what, attributes...)
	}
	s.reply(w, r, p.Status, api.ContentProblem, p.Problem)
}
