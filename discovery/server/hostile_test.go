package server

import (
	"compress/gzip"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/client"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

type hostileInput struct {
	what, method, path, token, body string
	status                          int
	says                            string
}

// hostileCertificates returns client certificates that the server does not accept in place of a token.
func hostileCertificates(t *testing.T, authority *testkit.Certificate) map[*testkit.Certificate]hostileInput {
	of := func(name string, change ...func(*x509.Certificate)) func(*x509.Certificate) {
		return func(c *x509.Certificate) {
			c.URIs = []*url.URL{{Scheme: "spiffe", Host: "munich.example", Path: "/provider/" + name}}
			for _, more := range change {
				more(c)
			}
		}
	}
	late := func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }
	early := func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Hour) }
	server := func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }
	all := map[*testkit.Certificate]hostileInput{
		authority.Issue(t, of("milan")): {"forged id, by certificate", "PUT", "/v1/offers/milan", "",
			with(`"provider":"rome-1"`), 422, "not one of this writer's clusters"},
		authority.Issue(t, of("milan")): {"unknown token with a good certificate", "PUT", "/v1/offers/milan", "s3cret",
			with(`"provider":"milan-1"`), 401, "a token this server knows"},
	}
	for _, c := range []struct {
		what, says string
		by         *testkit.Certificate
		change     func(*x509.Certificate)
	}{
		{"expired certificate", "renew it", authority, of("milan", late)},
		{"certificate of the future", "renew it", authority, of("milan", early)},
		{"certificate of a stranger", "unknown authority", testkit.NewAuthority(t), of("milan")},
		{"certificate of a server", "incompatible key usage", authority, of("milan", server)},
		{"certificate without a name", "no writer has one of the client", authority, func(*x509.Certificate) {}},
		{"certificate of a revoked writer", "was the writer removed?", authority, of("revoked")},
	} {
		all[c.by.Issue(t, c.change)] = hostileInput{c.what, "PUT", "/v1/offers/milan", "", with(`"provider":"milan-1"`), 401,
			c.says}
	}
	return all
}

func hostileInputs() []hostileInput {
	change := func(old, new string) string { return strings.Replace(goodOffer, old, new, 1) }
	const milan, rome = "/v1/offers/milan", "/v1/offers/rome"
	return []hostileInput{
		{"forged id", "PUT", milan, tokenM, with(`"provider":"rome-1"`), 422, "not one of this writer's clusters"},
		{"forged session", "POST", "/v1/sessions", tokenM, `{"provider":"rome-1"}`, 422, "not one of this writer's clusters"},
		{"replayed session", "PUT", milan + turn(1, 1), tokenA, goodOffer, 409, "already"},
		{"another writer's session", "PUT", milan + turn(1, 9), tokenM, with(`"provider":"milan-1"`), 409, "newer session"},
		{"unknown session", "PUT", milan + turn(99, 1), tokenA, goodOffer, 409, "does not know the session"},
		{"another writer's name", "PUT", rome, tokenM, change(`"name":"milan","c`, `"provider":"milan-1","name":"rome","c`), 403,
			"only its writer may replace or delete it"},
		{"another writer's offer", "DELETE", rome, tokenM, "", 403, "only its writer may replace or delete it"},
		{"negative quantity", "PUT", milan, tokenA, change(`"16"`, `"-16"`), 422, "lendable.cpu"},
		{"absurd quantity", "PUT", milan, tokenA, change(`"16"`, `"9e99999"`), 422, "lendable.cpu"},
		{"immense quantity", "PUT", milan, tokenA, change(`"64Gi"`, `"`+strings.Repeat("9", 5000)+`"`), 422, "lendable.memory"},
		{"negative price", "PUT", milan, tokenA, change(`0.1`, `-0.1`), 422, "price"},
		{"negative life", "PUT", milan, tokenA, with(`"ttlSeconds":-5`), 422, "ttlSeconds"},
		{"10 MB", "PUT", milan, tokenA, goodOffer + strings.Repeat(" ", 10<<20), 413, "8192 bytes"},
		{"compressed", "PUT", milan, tokenA, goodOffer, 415, "Content-Encoding"},
		{"unknown key", "PUT", milan, tokenA, with(`"admin":true`), 422, "unknown field"},
		{"a secret in a key", "PUT", milan, tokenA, with(`"kubeconfig":"s3cret"`), 422, "unknown field"},
		{"deep JSON", "PUT", milan, tokenA, strings.Repeat("[", 8000), 400, "not JSON"},
		{"unknown token", "PUT", milan, "s3cret", goodOffer, 401, "a token this server knows"},
		{"hash as token", "PUT", milan, hash(tokenA), goodOffer, 401, "a token this server knows"},
		{"no token", "PUT", milan, "", goodOffer, 401, "a token this server knows"},
		{"revoked writer", "PUT", milan, "token-of-revoked", goodOffer, 401, "a token this server knows"},
		{"SQL as token", "PUT", milan, "' OR '1'='1", goodOffer, 401, "a token this server knows"},
		{"reader", "DELETE", rome, tokenR, "", 403, "may not write"},
		{"SQL as name", "PUT", "/v1/offers/x';DROP%20TABLE%20offers;--", tokenA,
			change(`"name":"milan","c`, `"name":"x';DROP TABLE offers;--","c`), 422, "name"},
		{"SQL as label", "PUT", milan, tokenA, change(`"it"`, `"it' OR '1'='1"`), 422, "labels"},
		{"SQL as selector", "GET", "/v1/offers?labelSelector=country%3Dit'%20OR%201%3D1", tokenR, "", 400, "labelSelector"},
		{"zero byte as name", "DELETE", "/v1/offers/a%00b", tokenA, "", 422, "not a name of an offer"},
		{"zero byte as page", "GET", "/v1/offers?after=%00", tokenR, "", 400, "not a name of an offer"},
		{"broken UTF-8 as page", "GET", "/v1/offers?after=%ff", tokenR, "", 400, "not a name of an offer"},
		{"broken UTF-8 as name", "GET", "/v1/offers/%ff", tokenR, "", 404, "the offer does not exist"},
		{"broken UTF-8 in a name", "PUT", "/v1/offers/%ff", tokenA, change(`"name":"milan","c`, "\"name\":\"\xff\",\"c"), 422, "UTF-8"},
		{"path upwards", "PUT", "/v1/offers/x/../milan", tokenA, goodOffer, 404, "this path does not exist"},
		{"path upwards, escaped", "PUT", "/v1/offers/..%2F..%2Fmilan", tokenA, goodOffer, 422, "name"},
		{"path within", "PUT", "/v1/offers/milan/rome", tokenA, goodOffer, 404, "this path does not exist"},
		{"path doubled", "PUT", "//v1/offers/milan", tokenA, goodOffer, 404, "this path does not exist"},
	}
}

func gzipped(t *testing.T, text string) string {
	var out strings.Builder
	zip := gzip.NewWriter(&out)
	_, err := zip.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, zip.Close())
	return out.String()
}

// The server does not store invalid input. Each answer names the reason.
func TestInvalidInputIsNotStored(t *testing.T) {
	onEachStore(t, func(t *testing.T, db shared) {
		var writers changing
		a, b, r, m := rowsOf()
		revoked := fmt.Sprintf("{name: revoked, tokenSHA256: %s}", hash("token-of-revoked"))
		certified := "{name: certified, certificate: 'spiffe://munich.example/provider/milan', providers: [milan-1]}"
		authority, caFile := testkit.NewAuthority(t), filepath.Join(t.TempDir(), "ca.crt")
		require.NoError(t, os.WriteFile(caFile, authority.PEM(), 0o600))
		writers.set(t, a, b, r, m, certified, revoked)
		keep, log := db.open(t), &testkit.Buffer{}
		authorities, err := LoadAuthorities(caFile, slog.New(slog.NewTextHandler(log, nil)))
		require.NoError(t, err)
		s, err := New(Options{Store: keep, Writers: &writers, ClientAuthorities: authorities,
			Log: slog.New(slog.NewTextHandler(log, nil))})
		require.NoError(t, err)
		call := func(c hostileInput, by *testkit.Certificate) *httptest.ResponseRecorder {
			r := httptest.NewRequest(c.method, c.path, strings.NewReader(c.body))
			if by != nil {
				r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{by.Cert}}
			}
			if by == nil || c.token != "" {
				r.Header.Set("Authorization", "Bearer "+c.token)
			}
			r.Header.Set("Content-Type", "application/json")
			if c.what == "compressed" {
				r.Header.Set("Content-Encoding", "gzip")
			}
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			return w
		}
		accept := func(method, path, token, body string) {
			w := call(hostileInput{method: method, path: path, token: token, body: body}, nil)
			require.Less(t, w.Code, 300, w.Body)
		}
		accept("POST", "/v1/sessions", tokenA, `{"provider":"milan-1"}`)
		accept("PUT", "/v1/offers/milan"+turn(1, 1), tokenA, goodOffer)
		accept("DELETE", "/v1/offers/milan"+turn(1, 2), tokenA, "")
		accept("PUT", "/v1/offers/rome", tokenA, strings.Replace(goodOffer, "milan", "rome", 1))
		accept("PUT", "/v1/offers/turin", "token-of-revoked", strings.Replace(goodOffer, "milan", "turin", 1))
		writers.set(t, a, b, r, m, certified)
		stored := func() []store.Record {
			now, err := keep.Now(t.Context())
			require.NoError(t, err)
			records, err := keep.List(t.Context(), store.Query{Limit: 100}, now)
			require.NoError(t, err)
			return records
		}
		before := stored()
		require.Len(t, before, 2)
		refuse := func(c hostileInput, by *testkit.Certificate) {
			t.Run(c.what, func(t *testing.T) {
				if c.what == "compressed" {
					c.body = gzipped(t, c.body)
				}
				w := call(c, by)
				require.Equal(t, c.status, w.Code, w.Body)
				require.Contains(t, w.Body.String(), c.says)
				require.Equal(t, before, stored(), "nothing is stored")
				require.NotContains(t, log.String(), "s3cret")
			})
		}
		for _, c := range hostileInputs() {
			refuse(c, nil)
		}
		for by, c := range hostileCertificates(t, authority) {
			refuse(c, by)
		}
	})
}

// A client sends nothing to a server whose certificate has expired.
func TestClientSendsNothingToAnExpiredServer(t *testing.T) {
	var asked atomic.Bool
	web := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Store(true) }))
	authority := testkit.NewAuthority(t)
	expired := authority.Issue(t, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
	web.TLS = &tls.Config{Certificates: []tls.Certificate{expired.TLS()}}
	web.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	web.StartTLS()
	t.Cleanup(web.Close)
	dir := t.TempDir()
	token, ca := filepath.Join(dir, "token"), filepath.Join(dir, "ca.crt")
	require.NoError(t, os.WriteFile(token, []byte(tokenA), 0o600))
	require.NoError(t, os.WriteFile(ca, authority.PEM(), 0o600))
	c, err := client.New(client.Options{URL: web.URL, TokenFile: token, CAFile: ca})
	require.NoError(t, err)
	posted, err := api.Decode([]byte(goodOffer))
	require.NoError(t, err)
	_, err = c.Put(t.Context(), posted)
	require.ErrorContains(t, err, "certificate has expired")
	require.False(t, asked.Load())
}
