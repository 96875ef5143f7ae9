package attack

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWorker attacks the worker while CA requests nodes. The attacker owns the discovery server.
func TestWorker(t *testing.T) {
	var page atomic.Pointer[func(*http.Request) []byte]
	var counted atomic.Pointer[atomic.Int64] // the worker's requests during this attack
	counted.Store(new(atomic.Int64))
	nothing := func(*http.Request) []byte { return []byte(`{"items":[]}`) }
	page.Store(&nothing)
	s := newStack(t)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		counted.Load().Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write((*page.Load())(r))
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{s.by.Issue(t).TLS()}}
	server.StartTLS()
	t.Cleanup(server.Close)
	require.NoError(t, os.WriteFile(s.in("token"), []byte(tokenWorker), 0o600))
	h := newHub(s, "--discovery-url", server.URL, "--discovery-ca", s.in("ca.crt"), "--discovery-token-file",
		s.in("token"), "--discovery-secret-namespaces", "lend")

	// answering returns an attack during which the discovery server gives this answer.
	answering := func(name string, with func(*http.Request) []byte) attack {
		return attack{name: name, once: func(ctx context.Context, requests *atomic.Int64) {
			counted.Store(requests)
			page.Store(&with)
			<-ctx.Done()
			page.Store(&nothing)
			counted.Store(new(atomic.Int64))
		}}
	}
	whole := func(text []byte) func(*http.Request) []byte { return func(*http.Request) []byte { return text } }
	items := func(each string, bytesOf int) []byte {
		return []byte(`{"items":[` + strings.TrimSuffix(strings.Repeat(each+",", bytesOf/(len(each)+1)), ",") + `]}`)
	}
	clients := append(append([]honest{h.node()}, h.calls()...), h.worker.observed()...)
	under(t, h.worker, []*member{h.server, h.worker}, clients,
		answering("empty-offers", whole(items("{}", 6<<20-100))),
		answering("nested", whole([]byte(`{"items":`+strings.Repeat("[", 3<<20)+strings.Repeat("]", 3<<20-100)+`}`))),
		answering("large-answer", whole(bytes.Repeat([]byte(" "), 64<<20))),
		answering("long-offers", providersOf(500, 7<<10)),
		answering("many-providers", providersOf(500, 0)),
		pipelined(h.worker.metrics))
}

// providersOf returns a function that answers with endless pages of offers. Each offer has this size and belongs to a
// different provider.
func providersOf(many, size int) func(*http.Request) []byte {
	var next atomic.Int64
	return func(*http.Request) []byte {
		var items []string
		for range many {
			n := next.Add(1)
			text := string(offer(fmt.Sprintf("p%012d", n), size))
			items = append(items, strings.TrimSuffix(text, "}")+fmt.Sprintf(`,"epoch":"e%d","writer":"evil",`+
				`"updated":"2026-01-01T00:00:00Z","remainingSeconds":60}`, n))
		}
		return fmt.Appendf(nil, `{"items":[%s],"next":"p%012d"}`, strings.Join(items, ","), next.Load())
	}
}
