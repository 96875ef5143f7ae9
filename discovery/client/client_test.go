package client_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/client"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/server"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store/storetest"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

const token = "a-token"

func posted(t *testing.T, name string) api.Posted {
	t.Helper()
	p, err := api.Decode(fmt.Appendf(nil, `{"name":%q,"credentials":{"secretRef":{"namespace":"lend","name":%q}},
		"lendable":{"cpu":"16","memory":"64Gi","pods":"110"},"labels":{"country":"it"},"price":0.1,"lingerSeconds":0,"unpeer":"never"}`, name, name))
	require.NoError(t, err)
	return p
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// site is a discovery server and the files of its client.
type site struct {
	web           *httptest.Server
	store         store.Store
	options       client.Options
	token, caFile string
	mu            sync.Mutex
	handler       http.Handler // replaces the real one when set
	now           time.Time
}

func (s *site) set(h http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handler = nil
	if h != nil {
		s.handler = h
	}
}

func (s *site) advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
}

func newSite(t *testing.T) *site {
	t.Helper()
	writers, err := server.ParseWriters(fmt.Appendf(nil,
		"writers: [{name: w, tokenSHA256: %s}, {name: r, tokenSHA256: %s, readOnly: true}]", hash(token), hash("reads")))
	require.NoError(t, err)
	kept := storetest.New(t)
	real, err := server.New(server.Options{Store: kept, Writers: writers, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	s := &site{now: time.Now(), store: kept}
	s.web = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		h := s.handler
		s.mu.Unlock()
		if h == nil {
			h = real
		}
		h.ServeHTTP(w, r)
	}))
	s.web.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	s.web.StartTLS()
	t.Cleanup(s.web.Close)
	dir := t.TempDir()
	s.caFile, s.token = filepath.Join(dir, "ca.crt"), filepath.Join(dir, "token")
	require.NoError(t, os.WriteFile(s.caFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
		Bytes: s.web.Certificate().Raw}), 0o600))
	require.NoError(t, os.WriteFile(s.token, []byte(token+"\n"), 0o600))
	s.options = client.Options{
		URL: s.web.URL, CAFile: s.caFile, TokenFile: s.token, SecretNamespaces: []string{"lend"},
		Now: func() time.Time { s.mu.Lock(); defer s.mu.Unlock(); return s.now },
	}
	return s
}

func (s *site) client(t *testing.T) (*client.Client, *client.Source) {
	t.Helper()
	c, err := client.New(s.options)
	require.NoError(t, err)
	src, err := client.NewSource(c)
	require.NoError(t, err)
	return c, src
}

type identify struct{}

func (identify) Identify(_ context.Context, c fleet.Credentials) (string, error) {
	return "id-" + c.SecretRef.Name, nil
}

func TestWrittenOfferIsListed(t *testing.T) {
	s := newSite(t)
	c, src := s.client(t)
	offers, problems, err := src.List(t.Context())
	require.NoError(t, err)
	require.Empty(t, offers)
	require.Empty(t, problems)

	liar := posted(t, "liar")
	liar.Provider = "somebody-else"
	for _, p := range []api.Posted{posted(t, "milan"), posted(t, "rome"), liar} {
		_, err := c.Put(t.Context(), p)
		require.NoError(t, err)
	}
	offers, problems, err = src.List(t.Context())
	require.NoError(t, err)
	require.Empty(t, problems)
	require.Len(t, offers, 3)
	want := posted(t, "milan").Offer()
	require.NotNil(t, offers[1].Expires, "the server gives every offer an end")
	want.Expires = offers[1].Expires
	require.Equal(t, discovery.Epoch(want), discovery.Epoch(offers[1]), "every field arrives")

	offers, problems, err = discovery.Resolve(src, identify{}, discovery.Options{}).Offers(t.Context())
	require.NoError(t, err)
	require.Len(t, offers, 2)
	require.Equal(t, "id-milan", offers[0].Provider)
	require.Equal(t, "api: offer liar: declares provider somebody-else, but its credentials lead to id-liar",
		problems[0].String())

	for range 2 {
		require.NoError(t, c.Delete(t.Context(), "milan"))
	}
	offers, _, err = src.List(t.Context())
	require.NoError(t, err)
	require.Len(t, offers, 2)
}

func TestManyPages(t *testing.T) {
	s := newSite(t)
	_, src := s.client(t)
	end := time.Now().Add(time.Hour)
	for i := range api.MaxLimit + 1 {
		p := posted(t, fmt.Sprintf("o%04d", i))
		p.Expires = &end
		_, err := s.store.Put(t.Context(), store.Record{Offer: p, Writer: "w"}, store.Turn{}, time.Now())
		require.NoError(t, err)
	}
	offers, _, err := src.List(t.Context())
	require.NoError(t, err)
	require.Len(t, offers, api.MaxLimit+1)
}

func TestRefusalsReportTheirReason(t *testing.T) {
	s := newSite(t)
	c, src := s.client(t)
	broken := posted(t, "milan")
	broken.Price = -1
	_, err := c.Put(t.Context(), broken)
	require.ErrorContains(t, err, "price: is -1: give at least 0")

	long := posted(t, "milan")
	far := time.Now().Add(1000 * time.Hour * 24)
	long.Expires = &far
	_, err = c.Put(t.Context(), long)
	require.ErrorIs(t, err, client.ErrRefused)
	require.ErrorContains(t, err, "put offer milan: refused by the discovery server: 422 The offer is invalid: nothing "+
		"was changed; expires: is more than")

	require.NoError(t, os.WriteFile(s.token, []byte("reads"), 0o600))
	_, err = c.Put(t.Context(), posted(t, "milan"))
	require.ErrorIs(t, err, client.ErrDenied)
	_, _, err = src.List(t.Context())
	require.NoError(t, err, "the token file is read again")
	require.NoError(t, os.WriteFile(s.token, []byte("unknown"), 0o600))
	_, _, err = src.List(t.Context())
	require.ErrorIs(t, err, client.ErrDenied, "a revoked reader gets no stale list")
	require.NotContains(t, err.Error(), "unknown")
}

func TestAnUnreachableServer(t *testing.T) {
	s := newSite(t)
	c, src := s.client(t)
	_, err := c.Put(t.Context(), posted(t, "milan"))
	require.NoError(t, err)
	s.set(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	_, _, err = src.List(t.Context())
	require.ErrorIs(t, err, client.ErrUnreachable, "nothing was ever listed")

	s.set(nil)
	listed := s.options.Now().UTC().Format(time.RFC3339)
	_, _, err = src.List(t.Context())
	require.NoError(t, err)
	s.set(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	s.advance(4 * time.Minute)
	offers, problems, err := src.List(t.Context())
	require.NoError(t, err)
	require.Len(t, offers, 1)
	require.Equal(t, "api: the list of "+listed+" is used: discovery server unreachable: the answer is 502 Bad "+
		"Gateway", problems[0].String())
	s.advance(time.Minute)
	_, _, err = src.List(t.Context())
	require.ErrorIs(t, err, client.ErrUnreachable, "not for ever")
}

func TestInvalidOffersAreReported(t *testing.T) {
	good := `{"name":"good","credentials":{"secretRef":{"namespace":"lend","name":"good"}},"lendable":{"cpu":"1","memory":"1Gi","pods":"1"},"epoch":"e","writer":"w","updated":"2026-11-20T12:00:00Z","fieldOfTheFuture":1}`
	bad := func(old, new string) string { return strings.Replace(good, old, new, 1) }
	for name, c := range map[string]struct {
		items string
		want  string
	}{
		"a file": {bad(`{"secretRef":{"namespace":"lend","name":"good"}}`, `{"kubeconfigFile":"/etc/shadow"}`),
			"offer good: credentials.kubeconfigFile: is not accepted by the discovery server"},
		"foreign namespace": {bad(`"lend"`, `"kube-system"`),
			"offer good: refers to a Secret in namespace kube-system; allowed: lend"},
		"no name":  {bad(`"name":"good","c`, `"c`), "offer number 1: name: is missing"},
		"negative": {bad(`"1Gi"`, `"-1Gi"`), "offer good: lendable.memory: must not be negative"},
		"many digits": {bad(`"cpu":"1"`, `"cpu":"1e300000"`),
			"offer good: cannot be read: lendable.cpu: want a quantity such as"},
		"many digits of a node": {bad(`"epoch"`, `"largestNodes":[{"cpu":"1"},{"cpu":"1e300000"}],"epoch"`),
			"offer good: cannot be read: largestNodes[1].cpu: want a quantity such as"},
		"too many nodes": {bad(`"epoch"`, `"largestNodes":[{},{},{},{},{}],"epoch"`), "offer good: largestNodes"},
		"many digits, written twice": {bad(`"cpu":"1"`, `"cpu":"1.00000000000000000001e300000000","cpu":"1"`),
			"offer good: cannot be read: an amount has too many digits"},
		"escape codes": {bad(`"name":"good"`, `"name":"\u001b[2Jgood"`),
			`offer ?[2Jgood: name: "\x1b[2Jgood" is not a DNS-1123 subdomain`},
		"an address for its network": {bad(`"epoch"`, `"network":{"clientAddress":"203.0.113.1"},"epoch"`),
			"offer good: network.clientAddress: offers of the discovery server may not contain addresses"},
		"how virtual kubelets run here": {bad(`"epoch"`, `"virtualKubelet":"mine","epoch"`),
			"offer good: virtualKubelet: is not accepted by the discovery server"},
		"no object":  {"7", "offer number 1: cannot be read"},
		"wrong type": {bad(`"cpu":"1"`, `"cpu":{}`), "offer good: cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.set(func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprintf(w, `{"items":[%s,%s,%s],"future":true}`, c.items, bad(`"good"`, `"fine"`), bad(`"good"`, `"fine"`))
			})
			_, src := s.client(t)
			offers, problems, err := src.List(t.Context())
			require.NoError(t, err)
			require.Len(t, offers, 1)
			require.Equal(t, "fine", offers[0].Name)
			require.Len(t, problems, 2)
			require.Contains(t, problems[0].String(), c.want)
			require.Equal(t, "api: offer fine: is listed twice", problems[1].String())
		})
	}
}

// The network addresses in received offers must be inside the worker's networks. The client refuses host names, because
// they can resolve to any address.
func TestOfferedAddressesMustBeInAllowedNetworks(t *testing.T) {
	for network, want := range map[string]string{
		`{"clientAddress":"203.0.113.9","loadBalancerIP":"2001:db8::1"}`: "",
		`{"serviceType":"NodePort","nodePort":31840}`:                    "",
		`{"clientAddress":"::ffff:203.0.113.9"}`:                         "",
		`{"clientAddress":"198.51.100.1"}`: "network.clientAddress: 198.51.100.1 is not in " +
			"--discovery-network-cidrs of the worker (203.0.113.0/24, 2001:db8::/32)",
		`{"clientAddress":"gw.example.com"}`: "network.clientAddress: gw.example.com is not in",
		`{"loadBalancerIP":"10.0.0.1"}`:      "network.loadBalancerIP: 10.0.0.1 is not in",
	} {
		s := newSite(t)
		s.options.NetworkCIDRs = []string{"203.0.113.0/24", "2001:db8::/32"}
		s.set(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"items":[{"name":"one","credentials":{"secretRef":{"namespace":"lend","name":"one"}},`+
				`"lendable":{"cpu":"1","memory":"1Gi","pods":"1"},"network":%s}]}`, network)
		})
		_, src := s.client(t)
		offers, problems, err := src.List(t.Context())
		require.NoError(t, err)
		if want == "" {
			require.Len(t, offers, 1, "%s: %v", network, problems)
			require.JSONEq(t, network, string(offers[0].Network.Options))
			continue
		}
		require.Empty(t, offers)
		require.Contains(t, problems[0].String(), want)
	}
	s := newSite(t)
	s.options.NetworkCIDRs = []string{"203.0.113.0"}
	_, err := client.New(s.options)
	require.ErrorContains(t, err, `parse network CIDR "203.0.113.0": write it like 203.0.113.0/24`)
}

func TestMalformedAnswersAreErrors(t *testing.T) {
	huge := strings.Repeat("x", 1<<20)
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"html": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
			"not the JSON of a discovery server"},
		"no items": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") }, "not a list of offers"},
		"circles":  {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"items":[],"next":"a"}`) }, "pagination does not advance"},
		"endless": {func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, `{"items":[],"next":%q}`, r.URL.Query().Get("after")+"a")
		}, "more than 20000 offers"},
		"too large": {func(w http.ResponseWriter, _ *http.Request) {
			for range 40 {
				_, _ = w.Write([]byte(huge))
			}
		}, "larger than 6 MiB"},
		"redirect": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "https://elsewhere.example/", 302) },
			"302 Found"},
		"hangs up": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "unreachable"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.set(c.answer)
			_, src := s.client(t)
			_, _, err := src.List(t.Context())
			require.ErrorIs(t, err, client.ErrUnreachable)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), token)
		})
	}
}

func TestSlowServerCountsAsUnreachable(t *testing.T) {
	s := newSite(t)
	release := make(chan struct{})
	// The handler waits for the end of the test, because a handler that ends with its request could still answer it.
	s.set(func(http.ResponseWriter, *http.Request) { <-release })
	defer close(release)
	s.options.Timeout = 20 * time.Millisecond
	_, src := s.client(t)
	_, _, err := src.List(t.Context())
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, err, client.ErrUnreachable)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = src.List(ctx)
	require.ErrorIs(t, err, context.Canceled)
}

func TestChangedCAFileIsRead(t *testing.T) {
	s := newSite(t)
	good, err := os.ReadFile(s.caFile)
	require.NoError(t, err)
	_, src := s.client(t)
	_, _, err = src.List(t.Context())
	require.NoError(t, err)

	require.NoError(t, os.WriteFile(s.caFile, []byte("no PEM"), 0o600))
	_, _, err = src.List(t.Context())
	require.ErrorContains(t, err, "contains no certificate in PEM")

	require.NoError(t, os.WriteFile(s.caFile, good, 0o600))
	_, _, err = src.List(t.Context())
	require.NoError(t, err)

	require.NoError(t, os.WriteFile(s.caFile, testkit.NewAuthority(t).PEM(), 0o600))
	s.advance(time.Hour) // the last list is too old to be used
	_, _, err = src.List(t.Context())
	require.ErrorIs(t, err, client.ErrUnreachable, "an authority that was taken away is not trusted")

	s.options.CAFile = "" // the system's authorities have not signed the test server's certificate
	_, src = s.client(t)
	_, _, err = src.List(t.Context())
	require.ErrorIs(t, err, client.ErrUnreachable)
	require.ErrorContains(t, err, "certificate")
}

func TestNewRefuses(t *testing.T) {
	s := newSite(t)
	empty := filepath.Join(t.TempDir(), "empty")
	require.NoError(t, os.WriteFile(empty, []byte("\n"), 0o600))
	for name, c := range map[string]struct {
		change func(*client.Options)
		want   string
	}{
		"http":     {func(o *client.Options) { o.URL = "http://x" }, "must be https://host"},
		"no host":  {func(o *client.Options) { o.URL = "https://" }, "must be https://host"},
		"no url":   {func(o *client.Options) { o.URL = "" }, "must be https://host"},
		"password": {func(o *client.Options) { o.URL = "https://u:secret@x" }, "remove user, query and fragment"},
		"query":    {func(o *client.Options) { o.URL = "https://x?token=secret" }, "remove user, query and fragment"},
		"no CA":    {func(o *client.Options) { o.CAFile = empty + "no" }, "read TLS files"},
		"empty CA": {func(o *client.Options) { o.CAFile = empty }, "contains no certificate"},
		"no token": {func(o *client.Options) { o.TokenFile = empty }, "contains no token"},
		"no file":  {func(o *client.Options) { o.TokenFile = "" }, "give a token file"},
		"no key":   {func(o *client.Options) { o.CertFile = empty }, "a certificate with its key"},
		"no pair":  {func(o *client.Options) { o.CertFile, o.KeyFile = empty, empty }, "with key "},
	} {
		t.Run(name, func(t *testing.T) {
			options := s.options
			c.change(&options)
			_, err := client.New(options)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "secret")
		})
	}
	options := s.options
	options.SecretNamespaces = nil
	c, err := client.New(options)
	require.NoError(t, err)
	_, err = client.NewSource(c)
	require.ErrorContains(t, err, "give the namespaces")
}

// The server refuses a request because of the rate limit. The client repeats the request at the time that the server
// requests, if this time is before the timeout.
func TestRequestIsRepeatedAfterRetryAfter(t *testing.T) {
	for after, want := range map[string]int64{"1": 2, "3600": 1, "": 1, "soon": 1} {
		var asked atomic.Int64
		web := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if asked.Add(1) == 1 {
				w.Header().Set("Retry-After", after)
				w.Header().Set("Content-Type", api.ContentProblem)
				w.WriteHeader(http.StatusTooManyRequests)
				fmt.Fprint(w, `{"title":"Too Many Requests","detail":"try again","status":429}`)
				return
			}
			w.WriteHeader(http.StatusNoContent)
		}))
		t.Cleanup(web.Close)
		dir := t.TempDir()
		token, ca := filepath.Join(dir, "token"), filepath.Join(dir, "ca.crt")
		require.NoError(t, os.WriteFile(token, []byte("t"), 0o600))
		authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})
		require.NoError(t, os.WriteFile(ca, authority, 0o600))
		c, err := client.New(client.Options{URL: web.URL, TokenFile: token, CAFile: ca, Timeout: time.Minute})
		require.NoError(t, err)
		err = c.Delete(t.Context(), "milan")
		require.Equal(t, want, asked.Load(), after)
		if want > 1 {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, client.ErrUnreachable)
		require.ErrorContains(t, err, "429 Too Many Requests")
	}
}

// Names skips texts that cannot name an offer, so that no control character reaches a shell.
func TestNamesAreValid(t *testing.T) {
	s := newSite(t)
	c, _ := s.client(t)
	_, err := c.Put(t.Context(), posted(t, "milan"))
	require.NoError(t, err)
	names, err := c.Names(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"milan"}, names)

	s.set(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", api.ContentJSON)
		fmt.Fprint(w, `{"items": [{"name": "a\u001b[2J"}, {"name": "$(reboot)"}, {"name": 1}, {"name": "turin"}, {}]}`)
	})
	names, err = c.Names(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"turin"}, names)

	s.set(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	_, err = c.Names(t.Context())
	require.ErrorIs(t, err, client.ErrDenied)
}
