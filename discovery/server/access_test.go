package server

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// The log has an entry for each write. The entry contains the writer, the write, and whether it was accepted or why
// it was refused. The entry contains no token.
func TestEachWriteIsLogged(t *testing.T) {
	keep, log := onSQLite(t).open(t), &testkit.Buffer{}
	var writers changing
	a, b, r, _ := rowsOf()
	writers.set(t, a, b, r)
	rig := &rig{t: t, contract: loadContract(t), log: log}
	rig.serve(Options{Store: keep, Writers: &writers,
		Log: slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	const path = "/v1/offers/milan"
	session := rig.begin(tokenA, "milan-1")
	rig.do("PUT", path+turn(session, 1), tokenA, goodOffer)
	rig.do("PUT", path+turn(session, 2), tokenA, goodOffer)
	rig.do("PUT", path+turn(session, 3), tokenA, strings.Replace(goodOffer, "0.1", "0.2", 1))
	rig.do("PUT", path+turn(session, 3), tokenA, goodOffer)
	rig.do("PUT", path, tokenB, strings.Replace(goodOffer, `"cpu":"16"`, `"cpu":"-16","kubeconfig":"1"`, 1))
	rig.do("DELETE", path, "s3cret", "")
	rig.do("DELETE", path, tokenA, "")
	rig.do("GET", path, tokenA, "")
	var got []string
	for line := range strings.Lines(log.String()) {
		var l struct{ Level, Msg, Method, Path, Writer, From, Did, Session, Sequence, Error string }
		require.NoError(t, json.Unmarshal([]byte(line), &l), line)
		require.NotEmpty(t, l.From)
		why, _, _ := strings.Cut(l.Error, ": ")
		line := fmt.Sprint(l.Level, " ", l.Msg, " ", l.Method, " ", l.Path, " ", l.Writer, " ", l.Session, " ", l.Sequence,
			" ", l.Did, why)
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	require.Equal(t, []string{
		"INFO write accepted POST /v1/sessions a begun",
		"INFO write accepted PUT /v1/offers/milan a 1 1 created",
		"DEBUG write accepted PUT /v1/offers/milan a 1 2 renewed",
		"INFO write accepted PUT /v1/offers/milan a 1 3 changed",
		"INFO write refused PUT /v1/offers/milan a 1 3 409 The write was repeated",
		"INFO write refused PUT /v1/offers/milan b 422 The offer is invalid",
		"INFO write refused DELETE /v1/offers/milan unknown 401 Unauthorized",
		"INFO write accepted DELETE /v1/offers/milan a deleted",
		"INFO request refused GET /v1/offers/milan a 404 Not Found",
	}, got)
	require.Contains(t, log.String(), "lendable.cpu")
	for _, secret := range []string{"token-of", "s3cret", hash(tokenA)} {
		require.NotContains(t, log.String(), secret)
	}
}

// Each writer has its own rate limit.
func TestEachWriterHasItsOwnRate(t *testing.T) {
	r := newRig(t, onSQLite(t).open(t))
	writers, err := ParseWriters([]byte("writers: [" + fmt.Sprintf(
		"{name: a, tokenSHA256: %s}, {name: b, tokenSHA256: %s}",
		hash(tokenA), hash(tokenB)) + "]"))
	require.NoError(t, err)
	r.serve(Options{Store: onSQLite(t).open(t), Writers: writers, Rate: 0.001}) // one request in 17 minutes
	require.Equal(t, 200, r.do("GET", "/v1/offers", tokenA, "").status)
	for range 3 {
		late := r.do("PUT", "/v1/offers/milan", tokenA, goodOffer)
		require.Equal(t, 429, late.status)
		require.Regexp(t, `^(1000|[1-9]\d{0,2})$`, late.header.Get("Retry-After"))
	}
	require.Equal(t, 200, r.do("GET", "/v1/offers", tokenB, "").status)
	require.Contains(t, r.log.String(), "429 Too Many Requests")
}

// Requests without valid credentials are limited by their address, regardless of their content, and do not reduce the
// limits of authenticated requests. The number of remembered addresses is bounded.
func TestUnauthenticatedRequestsAreLimitedByAddress(t *testing.T) {
	writers, err := ParseWriters(fmt.Appendf(nil, "writers: [{name: a, tokenSHA256: %s}]", hash(tokenA)))
	require.NoError(t, err)
	s, err := New(Options{Store: onSQLite(t).open(t), Writers: writers, Rate: 0.001, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	from := func(address, token string) *httptest.ResponseRecorder {
		r, w := httptest.NewRequest("GET", "/v1/offers", nil), httptest.NewRecorder()
		r.RemoteAddr = address
		r.Header.Set("Authorization", "Bearer "+token)
		s.ServeHTTP(w, r)
		return w
	}
	require.Equal(t, 401, from("192.0.2.1:1", "s3cret").Code)
	late := from("192.0.2.1:2", "another")
	require.Equal(t, 429, late.Code)
	require.NotEmpty(t, late.Header().Get("Retry-After"))
	require.Contains(t, late.Body.String(), "this address makes")
	require.Equal(t, 401, from("[2001:db8::1]:1", "s3cret").Code)
	require.Equal(t, 200, from("192.0.2.1:3", tokenA).Code)
	for n := range 2 * maxAddresses {
		from(fmt.Sprintf("[2001:db8::1:%x]:1", n), "s3cret")
	}
	require.Equal(t, maxAddresses+1, len(s.strangers.of))
	require.Equal(t, 429, from("192.0.2.2:1", "s3cret").Code, "it counts with all others")
}

// Verifying the signatures of a certificate chain costs more CPU than the rest of a request. The server therefore
// does not verify the chain of an unknown client when the chain is long, or while its address sends too many
// requests. A known client with the same address is not delayed.
func TestCertificatesOfUnknownClientsCostLittle(t *testing.T) {
	authority, other := testkit.NewAuthority(t), testkit.NewAuthority(t)
	caFile := filepath.Join(t.TempDir(), "ca.crt")
	require.NoError(t, os.WriteFile(caFile, authority.PEM(), 0o600))
	authorities, err := LoadAuthorities(caFile, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	writers, err := ParseWriters([]byte("writers: [{name: a, certificate: 'spiffe://a', providers: [milan-1]}]"))
	require.NoError(t, err)
	s, err := New(Options{Store: onSQLite(t).open(t), Writers: writers, ClientAuthorities: authorities, Rate: 0.2,
		Log: slog.New(slog.DiscardHandler)}) // two requests, and the next after five seconds
	require.NoError(t, err)
	uri := func(c *x509.Certificate) { c.URIs = []*url.URL{{Scheme: "spiffe", Host: "a"}} }
	good, bad := authority.Issue(t, uri), other.Issue(t, uri)
	from := func(chain ...*x509.Certificate) *httptest.ResponseRecorder {
		r, w := httptest.NewRequest("GET", "/v1/offers", nil), httptest.NewRecorder()
		r.RemoteAddr, r.TLS = "192.0.2.1:1", &tls.ConnectionState{PeerCertificates: chain}
		s.ServeHTTP(w, r)
		return w
	}
	require.Equal(t, 200, from(good.Cert).Code)
	long := from(slices.Repeat([]*x509.Certificate{bad.Cert}, maxChain+1)...)
	require.Equal(t, 401, long.Code)
	require.Contains(t, long.Body.String(), "the client sends 6 certificates")
	require.Equal(t, 401, from(bad.Cert).Code)
	require.Equal(t, 429, from(bad.Cert).Code)
	require.Equal(t, 200, from(good.Cert).Code)
}

// TestUnknownClientsCauseFewLogLines checks that many requests of an unknown client cause only a few log lines.
func TestUnknownClientsCauseFewLogLines(t *testing.T) {
	log := &testkit.Buffer{}
	writers, err := ParseWriters(fmt.Appendf(nil, "writers: [{name: a, tokenSHA256: %s}]", hash(tokenA)))
	require.NoError(t, err)
	s, err := New(Options{Store: onSQLite(t).open(t), Writers: writers, Log: slog.New(slog.NewJSONHandler(log, nil))})
	require.NoError(t, err)
	for range 5000 {
		s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/v1/offers/"+strings.Repeat("a", 14_000), nil))
	}
	require.Contains(t, log.String(), "request refused")
	require.Less(t, len(log.String()), 100_000)
}
