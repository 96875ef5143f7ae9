package server

import (
	"bytes"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/client"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store/postgres"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store/sqlite"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	kit "github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/postgres"
)

// manyOffers copies the offer milan 10,000 times, with 100 different labels.
const manyOffers = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
	INSERT INTO offers (name, writer, expires, record, labels)
	SELECT 'o' || i, writer, expires, replace(replace(record, '"name":"milan"', '"name":"o' || i || '"'),
	'"country":"it"', '"country":"c' || (i % 100) || '"'), ',country=c' || (i % 100) || ',' FROM offers, n`

// BenchmarkList lists by a selector that matches 100 of 10,000 offers. It compares the time with a plain handler that
// answers the same bytes, and prints BENCH <name> <value> <unit> <ratio> <against>.
func BenchmarkList(b *testing.B) {
	for _, name := range []string{"sqlite", "postgres"} {
		keep, run := benchStore(b, name)
		writers, err := ParseWriters([]byte("writers: [{name: a, tokenSHA256: " + hash(tokenA) + "}]"))
		require.NoError(b, err)
		s, err := New(Options{Store: keep, Writers: writers, Log: slog.New(slog.DiscardHandler)})
		require.NoError(b, err)
		web := httptest.NewTLSServer(s)
		answer := call(b, web, http.MethodPut, "/v1/offers/milan", goodOffer)
		require.Contains(b, string(answer), "remainingSeconds")
		run(manyOffers)
		const path = "/v1/offers?labelSelector=country%3Dc7"
		answer = call(b, web, http.MethodGet, path, "")
		require.Equal(b, 100, bytes.Count(answer, []byte(`"epoch":`)))
		write := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(answer) }
		bare := httptest.NewTLSServer(http.HandlerFunc(write))
		b.Run(name, func(b *testing.B) {
			var ours, base []time.Duration
			for b.Loop() {
				for at, took := range map[*httptest.Server]*[]time.Duration{web: &ours, bare: &base} {
					began := time.Now()
					call(b, at, http.MethodGet, path, "")
					*took = append(*took, time.Since(began))
				}
			}
			slices.Sort(ours)
			slices.Sort(base)
			p50 := ours[len(ours)/2]
			fmt.Printf("BENCH discovery-list-by-selector-%s-p50 %.1f ms %.1f bare-handler\n", name, p50.Seconds()*1000,
				p50.Seconds()/base[len(base)/2].Seconds())
		})
		web.Close()
		bare.Close()
	}
}

// benchStore returns an empty store, and a function that runs SQL in its database.
func benchStore(b *testing.B, name string) (keep store.Store, run func(string)) {
	if name == "sqlite" {
		path := filepath.Join(b.TempDir(), "offers.db")
		s, err := sqlite.Open(b.Context(), path)
		require.NoError(b, err)
		b.Cleanup(func() { _ = s.Close() })
		return s, func(query string) {
			db, err := sql.Open("sqlite", path)
			require.NoError(b, err)
			defer db.Close()
			_, err = db.ExecContext(b.Context(), query)
			require.NoError(b, err)
		}
	}
	server := kit.New(b)
	s, err := postgres.Open(b.Context(), benchDSN(b, server))
	require.NoError(b, err)
	b.Cleanup(func() { _ = s.Close() })
	return s, func(query string) { server.Query(b, "offers", query) }
}

func benchDSN(b *testing.B, server *kit.Server) string {
	server.CreateDatabase(b, "offers")
	file := filepath.Join(b.TempDir(), "dsn")
	require.NoError(b, os.WriteFile(file, []byte(server.DSN("offers")), 0o600))
	return file
}

func call(b *testing.B, at *httptest.Server, method, path, body string) []byte {
	r, err := http.NewRequestWithContext(b.Context(), method, at.URL+path, strings.NewReader(body))
	require.NoError(b, err)
	r.Header.Set("Authorization", "Bearer "+tokenA)
	r.Header.Set("Content-Type", "application/json")
	answer, err := at.Client().Do(r)
	require.NoError(b, err)
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	require.NoError(b, err)
	return raw
}

// BenchmarkRenewals runs 1,000 agents that renew their offers every ten seconds, each in its own session and over its
// own connection. It compares the CPU time of the server's process with the CPU time of a server that only reads the
// requests. It prints BENCH <name> <value> <unit> <ratio> <against>.
func BenchmarkRenewals(b *testing.B) {
	for b.Loop() {
		bare := renewals(b, "bare", "bare:")
		onSQLite := renewals(b, "sqlite", "sqlite:"+filepath.Join(b.TempDir(), "offers.db"))
		fmt.Printf("BENCH discovery-1000-agents-sqlite %.3f cores %.2f bare-handler\n", onSQLite, onSQLite/bare)
		onPostgres := renewals(b, "postgres", "postgres:"+benchDSN(b, kit.New(b)))
		fmt.Printf("BENCH discovery-1000-agents-postgres %.3f cores %.2f bare-handler\n", onPostgres, onPostgres/bare)
	}
}

func renewals(b *testing.B, name, keep string) (cores float64) {
	const agents, every = 1000, 10 * time.Second
	s := newSite(b, keep)
	first, process, kill := s.start(b)
	defer kill()
	var ready, done, failed atomic.Int64
	var all sync.WaitGroup
	stop := make(chan struct{})
	for i := range agents {
		c, err := client.New(client.Options{URL: first.URL(), CAFile: s.in("tls.crt"), TokenFile: s.in("token"),
			Timeout: time.Minute})
		require.NoError(b, err)
		posted := offer(b, fmt.Sprintf("o%d", i), 1)
		all.Go(func() {
			var session *client.Session
			tick := time.NewTimer(time.Duration(i) * every / agents)
			defer tick.Stop()
			for {
				select {
				case <-stop:
					return
				case <-tick.C:
				}
				tick.Reset(every)
				if session == nil {
					if session, _ = c.Begin(b.Context(), fmt.Sprintf("p%d", i)); session != nil {
						ready.Add(1)
					}
				} else if _, err := session.Put(b.Context(), posted); err != nil {
					failed.Add(1)
				} else {
					done.Add(1)
				}
			}
		})
	}
	reached := func(what string, count *atomic.Int64, n int64) {
		testkit.Until(b, 10*time.Minute, what, func() error {
			if got := count.Load(); got < n {
				return fmt.Errorf("%d of %d", got, n)
			}
			return nil
		})
	}
	reached("sessions", &ready, agents)
	reached("a round of writes", &done, agents)
	began, used, before := time.Now(), testkit.CPU(b, process.Pid), done.Load()
	failed.Store(0)
	reached("two rounds of writes", &done, before+2*agents)
	rate := float64(done.Load()-before) / time.Since(began).Seconds()
	cores = (testkit.CPU(b, process.Pid) - used).Seconds() / time.Since(began).Seconds()
	fmt.Printf("# %s: %.0f renewals a second, %d failed, %.3f cores\n", name, rate, failed.Load(), cores)
	close(stop)
	all.Wait()
	return cores
}
