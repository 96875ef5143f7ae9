package server

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// refusals lists the kinds of requests that the server refuses. For some kinds, each request uses a new connection.
var refusals = []struct {
	name    string
	request func(*http.Request)
	anew    bool
}{
	{"no-token", func(*http.Request) {}, false},
	{"unknown-token", func(r *http.Request) { r.Header.Set("Authorization", "Bearer s3cret") }, false},
	{"long-path", func(r *http.Request) { r.URL.Path += "/" + strings.Repeat("a", 8000) }, false},
	{"handshake", func(*http.Request) {}, true},
}

// These constants are the duration of a measurement, and the number of connections with refused requests.
const (
	refusing  = 5 * time.Second
	attackers = 8
)

// BenchmarkRefuse sends requests that the server refuses. It uses eight connections, and makes no pause after an
// answer. It measures the CPU time that the server's process uses for each request, and compares this time with that
// of a server that only reads requests. It also measures the latency of lists for a client with a token, while these
// requests are sent and without them. It prints BENCH <name> <value> <unit> <ratio> <against>.
func BenchmarkRefuse(b *testing.B) {
	for b.Loop() {
		for _, kind := range refusals {
			bare, _, _ := refuse(b, "bare:", kind.request, kind.anew)
			ours, attacked, quiet := refuse(b, "sqlite:"+filepath.Join(b.TempDir(), "offers.db"), kind.request, kind.anew)
			fmt.Printf("BENCH discovery-refuse-%s %.6f cpu-s %.1f bare-handler\n", kind.name, ours.Seconds(),
				ours.Seconds()/bare.Seconds())
			for _, q := range []float64{0.5, 0.99} {
				now, before := quantile(attacked, q), quantile(quiet, q)
				fmt.Printf("BENCH discovery-client-p%.0f-while-%s %.1f ms %.1f without-attack\n", 100*q, kind.name,
					1000*now.Seconds(), now.Seconds()/before.Seconds())
			}
		}
	}
}

func quantile(of []time.Duration, q float64) time.Duration {
	slices.Sort(of)
	return of[int(q*float64(len(of)-1))]
}

// refuse returns the CPU time for each refused request, and the latency of a client with and without the attack.
func refuse(b *testing.B, keep string, request func(*http.Request), anew bool) (cpu time.Duration, attacked,
	quiet []time.Duration) {
	b.Setenv(envRate, "50") // the shipped default
	s := newSite(b, keep)
	c, process, kill := s.start(b)
	defer kill()
	authority, err := os.ReadFile(s.in("tls.crt"))
	require.NoError(b, err)
	pool := x509.NewCertPool()
	require.True(b, pool.AppendCertsFromPEM(authority))
	ask := func(web *http.Client, change func(*http.Request)) error {
		r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, c.URL()+"/v1/offers", nil)
		if err != nil {
			return err
		}
		change(r)
		answer, err := web.Do(r)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		_, err = io.Copy(io.Discard, answer.Body)
		return err
	}
	known := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	defer known.CloseIdleConnections()
	list := func() (took []time.Duration) {
		next := time.NewTicker(25 * time.Millisecond) // less than the client's own limit
		defer next.Stop()
		for end := time.Now().Add(refusing); time.Now().Before(end); <-next.C {
			began := time.Now()
			require.NoError(b, ask(known, func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+tokenA) }))
			took = append(took, time.Since(began))
		}
		return took
	}
	quiet = list()

	var sent atomic.Int64
	var all sync.WaitGroup
	stop := make(chan struct{})
	for range attackers {
		web := &http.Client{Transport: &http.Transport{DisableKeepAlives: anew,
			TLSClientConfig: &tls.Config{RootCAs: pool}}}
		all.Go(func() {
			defer web.CloseIdleConnections()
			for {
				select {
				case <-stop:
					return
				default:
				}
				if ask(web, request) == nil {
					sent.Add(1)
				}
			}
		})
	}
	testkit.Until(b, time.Minute, "the attack has begun", func() error {
		if sent.Load() < attackers {
			return fmt.Errorf("%d requests", sent.Load())
		}
		return nil
	})
	used, before := testkit.CPU(b, process.Pid), sent.Load()
	attacked = list()
	used, before = testkit.CPU(b, process.Pid)-used, sent.Load()-before
	close(stop)
	all.Wait()
	require.Positive(b, before)
	return used / time.Duration(before), attacked, quiet
}
