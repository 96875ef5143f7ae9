package attack

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// These are the tokens of the discovery server's clients.
const (
	tokenWorker = "the-worker-of-this-test"
	tokenMilan  = "the-provider-of-this-test"
	tokenEvil   = "the-provider-that-attacks"
)

// TestDiscovery attacks the discovery server while a worker lists the offers and a provider renews an offer. Some
// attackers have no token. One attacker is a provider with a valid token.
func TestDiscovery(t *testing.T) {
	s := newStack(t)
	address := testkit.FreePorts(t, 1)[0]
	require.NoError(t, os.WriteFile(s.in("writers.yaml"), fmt.Appendf(nil, `writers:
- {name: worker, tokenSHA256: %s, consumer: munich}
- {name: milan, tokenSHA256: %s, providers: [milan], secretNamespaces: [lend]}
- {name: evil, tokenSHA256: %s, providers: [evil], secretNamespaces: [lend]}
`, hash(tokenWorker), hash(tokenMilan), hash(tokenEvil)), 0o600))
	server := s.start("discovery", "--listen", address, "--tls-cert", s.in("tls.crt"), "--tls-key", s.in("tls.key"),
		"--tls-client-ca", s.in("ca.crt"), "--writers", s.in("writers.yaml"), "--store", "sqlite:"+s.in("offers.db"))
	offers := "https://" + address + api.PathOffers
	web := func(anew bool) *http.Client {
		return &http.Client{Transport: &http.Transport{DisableKeepAlives: anew,
			TLSClientConfig:   &tls.Config{RootCAs: s.by.Pool()},
			ForceAttemptHTTP2: true}}
	}
	kept, anew := web(false), web(true)
	t.Cleanup(kept.CloseIdleConnections)
	put := func(ctx context.Context, web *http.Client, token, name string, body []byte) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodPut, offers+"/"+name, bytes.NewReader(body))
		if err != nil {
			return err
		}
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", api.ContentJSON)
		answer, err := web.Do(r)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		said, err := io.ReadAll(answer.Body)
		if err == nil && answer.StatusCode >= 300 {
			err = fmt.Errorf("%s: %.300s", answer.Status, said)
		}
		return err
	}
	clients := append([]honest{
		{"list", func(ctx context.Context) error { return get(ctx, kept, offers, tokenWorker) }, patience},
		{"put", func(ctx context.Context) error { return put(ctx, kept, tokenMilan, "milan", offer("milan", 0)) }, patience},
		{"new-connection", func(ctx context.Context) error { return get(ctx, anew, offers, tokenMilan) }, patience},
	}, server.observed()...)
	evil, chained := bad(nil, false), bad(longChain(t), false)
	ask := func(web *http.Client, path, token string) func(context.Context, *atomic.Int64) {
		return func(ctx context.Context, requests *atomic.Int64) {
			_ = get(ctx, web, offers+path, token)
			requests.Add(1)
		}
	}
	var next atomic.Int64
	under(t, server, []*member{server}, clients,
		attack{name: "no-token", hands: 8, once: ask(evil, "", "")},
		attack{name: "unknown-token", hands: 8, once: ask(evil, "", "guessed")},
		attack{name: "long-chain", hands: 20, once: ask(chained, "", "")},
		attack{name: "handshakes", hands: 8, once: ask(bad(nil, true), "", "")},
		attack{name: "large-bodies", hands: 8, once: func(ctx context.Context, requests *atomic.Int64) {
			_ = put(ctx, evil, tokenEvil, "evil", bytes.Repeat([]byte("["), 10<<20))
			requests.Add(1)
		}},
		attack{name: "selectors", hands: 8, once: ask(evil, "?labelSelector="+url.QueryEscape("a in ("+
			strings.TrimSuffix(strings.Repeat("v,", 7000), ",")+")"), tokenEvil)},
		attack{name: "large-offers", hands: 8, once: func(ctx context.Context, requests *atomic.Int64) {
			n := next.Add(1) % 1000
			_ = put(ctx, evil, tokenEvil, fmt.Sprintf("evil-%d", n), offer(fmt.Sprintf("evil-%d", n), 7<<10))
			ask(evil, "", tokenEvil)(ctx, requests)
		}},
		attack{name: "slow-bodies", hands: 300, once: slowBody(address)},
		halfHandshakes(address, 5000),
		pipelined(server.metrics))
}

// offer returns the body of a provider's offer. It adds labels until the body has the given size.
func offer(name string, size int) []byte {
	provider, _, _ := strings.Cut(name, "-")
	var labels strings.Builder
	labels.WriteString(`"country":"it"`)
	for n := 0; labels.Len() < size; n++ {
		fmt.Fprintf(&labels, `,"l%d":%q`, n, strings.Repeat("v", 63))
	}
	return fmt.Appendf(nil, `{"name":%q,"provider":%q,"ttlSeconds":3600,"credentials":{"secretRef":{"namespace":"lend",`+
		`"name":"milan"}},"lendable":{"cpu":"16","memory":"64Gi","pods":"110"},"labels":{%s},"price":0.1}`, name, provider,
		labels.String())
}

// slowBody sends the head of a write and a byte of its body, and waits until the server ends the connection.
func slowBody(address string) func(context.Context, *atomic.Int64) {
	return func(ctx context.Context, requests *atomic.Int64) {
		conn, err := from("127.0.0.9").DialContext(ctx, "tcp", address)
		if err != nil {
			return
		}
		over := tls.Client(conn, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // an attacker
		defer over.Close()
		defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
		_ = over.SetDeadline(time.Now().Add(30 * time.Second))
		_, err = fmt.Fprintf(over, "PUT %s/evil HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: %s\r\n"+
			"Content-Length: 8000\r\n\r\n{", api.PathOffers, tokenEvil, api.ContentJSON)
		if err == nil {
			requests.Add(1)
			_, _ = io.Copy(io.Discard, over)
		}
	}
}
