package server

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/client"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store/postgres"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store/sqlite"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	kit "github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/postgres"
)

const envStore, envDir, envRate = "DISCOVERY_TEST_STORE", "DISCOVERY_TEST_DIR", "DISCOVERY_TEST_RATE"

// TestServerProcess is the server process that other tests of this package start and kill.
func TestServerProcess(t *testing.T) {
	dir := os.Getenv(envDir)
	if dir == "" {
		t.Skip("it is a part of other tests")
	}
	quiet := slog.New(slog.DiscardHandler)
	certificates, err := LoadCertificates(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), quiet)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	fmt.Println(listener.Addr())
	kind, where, _ := strings.Cut(os.Getenv(envStore), ":")
	var keep store.Store
	switch kind {
	case "bare": // the server with which the benchmarks compare
		web := &http.Server{Handler: http.HandlerFunc(bare), ErrorLog: slog.NewLogLogger(quiet.Handler(), slog.LevelDebug)}
		require.NoError(t, web.ServeTLS(listener, filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")))
	case "postgres":
		keep, err = postgres.Open(t.Context(), where)
	case "sqlite":
		keep, err = sqlite.Open(t.Context(), where)
	}
	require.NoError(t, err)
	writers, err := OpenWriters(filepath.Join(dir, "writers.yaml"))
	require.NoError(t, err)
	limit, _ := strconv.ParseFloat(os.Getenv(envRate), 64) // without a value the rate is unlimited
	s, err := New(Options{Store: keep, Writers: writers, Log: quiet, Rate: limit})
	require.NoError(t, err)
	require.NoError(t, s.Serve(t.Context(), listener, certificates))
}

// bare reads a request and answers it like a write.
func bare(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", api.ContentJSON)
	fmt.Fprint(w, `{"session":1}`)
}

// site holds the files of server processes and their clients.
type site struct{ dir, store string }

func newSite(t testing.TB, store string) site {
	t.Helper()
	s := site{t.TempDir(), store}
	testkit.NewAuthority(t).Write(t, s.in("tls.crt"), s.in("tls.key"))
	a, b, r, _ := rowsOf()
	require.NoError(t, os.WriteFile(s.in("writers.yaml"), []byte("writers: ["+a+", "+b+", "+r+"]"), 0o600))
	require.NoError(t, os.WriteFile(s.in("token"), []byte(tokenA), 0o600))
	return s
}

func (s site) in(name string) string { return filepath.Join(s.dir, name) }

// start starts a server process. It returns a client of the server, the process, and a function that kills the process.
func (s site) start(t testing.TB) (c *client.Client, process *os.Process, kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestServerProcess$")
	cmd.Env = append(os.Environ(), envDir+"="+s.dir, envStore+"="+s.store)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var once sync.Once
	kill = func() { once.Do(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }) }
	t.Cleanup(kill)
	address, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	c, err = client.New(client.Options{URL: "https://" + strings.TrimSpace(address), CAFile: s.in("tls.crt"),
		TokenFile: s.in("token"), SecretNamespaces: []string{"lend"}, Timeout: time.Minute})
	require.NoError(t, err)
	return c, cmd.Process, kill
}

func offer(t testing.TB, name string, price int) api.Posted {
	t.Helper()
	posted, err := api.Decode([]byte(strings.Replace(goodOffer, `"name":"milan","c`, fmt.Sprintf(`"name":%q,"c`, name), 1)))
	require.NoError(t, err)
	posted.Price = float64(price)
	return posted
}

// load writes from four goroutines until the servers fail. Each goroutine writes its own offer again and again. When
// there are enough writes, load concurrently calls the function stop. It returns the last acknowledged price of each
// goroutine.
func load(t *testing.T, c *client.Client, stop func()) (acknowledged [4]int) {
	t.Helper()
	const enough = 60
	var hands sync.WaitGroup
	var writes atomic.Int64
	for hand := range acknowledged {
		hands.Go(func() {
			for price := 1; ; price++ {
				posted := offer(t, fmt.Sprintf("o%d", hand), price)
				if _, err := c.Put(t.Context(), posted); err != nil {
					return
				}
				acknowledged[hand] = price
				if writes.Add(1) == enough {
					hands.Go(stop)
				}
			}
		})
	}
	hands.Wait()
	stop() // when the servers have failed before
	return acknowledged
}

// checkKept compares the listed offers with the acknowledged writes. For each goroutine, the list must contain the last
// acknowledged write, or the next write, whose answer was lost.
func checkKept(t *testing.T, c *client.Client, acknowledged [4]int) {
	t.Helper()
	source, err := client.NewSource(c)
	require.NoError(t, err)
	var offers []fleet.Offer
	testkit.Until(t, time.Minute, "the offers are listed", func() error {
		var problems []discovery.Problem
		if offers, problems, err = source.List(t.Context()); err == nil && len(problems) > 0 {
			err = fmt.Errorf("%v", problems)
		}
		return err
	})
	prices := map[string]float64{}
	for _, o := range offers {
		prices[o.Name] = o.Price
	}
	for hand, price := range acknowledged {
		require.Contains(t, []float64{float64(price), float64(price + 1)}, prices[fmt.Sprintf("o%d", hand)], "hand %d", hand)
	}
}

// When the server is killed, no acknowledged write is lost.
func TestKilledServerLosesNoAcknowledgedWrite(t *testing.T) {
	onEachStore(t, func(t *testing.T, db shared) {
		s := newSite(t, db.name)
		c, _, kill := s.start(t)
		acknowledged := load(t, c, kill)
		c, _, _ = s.start(t)
		checkKept(t, c, acknowledged)
	})
}

// While PostgreSQL is down, writers receive an error that names this cause, and consumers use their last list until it
// is too old. No acknowledged write is lost, and the server needs no restart.
func TestKilledPostgresLosesNoAcknowledgedWrite(t *testing.T) {
	testkit.Slow(t)
	db := onPostgres(t, kit.New(t))
	s := newSite(t, db.name)
	c, _, _ := s.start(t)
	for hand := range 4 {
		_, err := c.Put(t.Context(), offer(t, fmt.Sprintf("o%d", hand), 0))
		require.NoError(t, err)
	}
	var later atomic.Int64
	consumer, err := client.New(client.Options{URL: c.URL(), CAFile: s.in("tls.crt"), TokenFile: s.in("token"),
		SecretNamespaces: []string{"lend"}, Timeout: time.Minute, KeepStale: time.Hour,
		Now: func() time.Time { return time.Now().Add(time.Duration(later.Load())) }})
	require.NoError(t, err)
	source, err := client.NewSource(consumer)
	require.NoError(t, err)
	offers, problems, err := source.List(t.Context())
	require.NoError(t, err)
	require.Empty(t, problems)
	require.Len(t, offers, 4)

	acknowledged := load(t, c, db.postgres.Kill)
	testkit.Until(t, time.Minute, "its connections end", func() error {
		if _, err := c.Put(t.Context(), offer(t, "o9", 1)); err == nil {
			return errors.New("it still answers")
		}
		return nil
	})
	_, err = c.Put(t.Context(), offer(t, "o9", 1))
	require.ErrorIs(t, err, client.ErrUnreachable)
	require.ErrorContains(t, err, "503 Service Unavailable: the server's database failed")
	stale, problems, err := source.List(t.Context())
	require.NoError(t, err)
	require.Len(t, stale, len(offers))
	require.Len(t, problems, 1)
	require.Contains(t, problems[0].Message, "503")
	later.Store(int64(time.Hour))
	_, _, err = source.List(t.Context())
	require.ErrorIs(t, err, client.ErrUnreachable)

	db.postgres.Start(t)
	testkit.Until(t, time.Minute, "the server reaches PostgreSQL again", func() error {
		_, _, err := source.List(t.Context())
		return err
	})
	checkKept(t, c, acknowledged)
}
