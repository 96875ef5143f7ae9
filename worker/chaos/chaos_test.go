package chaos

import (
	"context"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

var (
	duration = flag.Duration("chaos", 0, "how long the monkey works; 0: TestChaos is skipped")
	seed     = flag.Uint64("chaos-seed", 0, "seed of the monkey and of the driver; 0: another one each time")
	binary   = flag.String("chaos-binary", "", "binary of the product; empty: it is built")
	keep     = flag.String("chaos-dir", "",
		"directory for logs, world and database, which are kept there; empty: a temporary one, kept after a failure")
)

// How long a quiet point may take: a scale-out that was terminated is missed after two minutes, may then use its budget
// of another minute, and what it leaves is taken back with retries of up to a minute.
const restLimit = 5 * time.Minute

// Processes die, hang and are cut off, providers fail, operators cancel and terminate: what CA is told stays true, and
// in the end nothing is left over.
func TestChaos(t *testing.T) {
	if *duration <= 0 {
		t.Skip("run make chaos")
	}
	with := *seed
	if with == 0 {
		with = uint64(time.Now().UnixNano()) % 1_000_000
	}
	chaos(t, with, *duration, false)
}

// A short run with a gentle monkey and always the same seed, so that the whole of it does not rot between two `make
// chaos`.
func TestSmoke(t *testing.T) {
	if testing.Short() || *duration > 0 {
		t.Skip("a run of its own takes half a minute")
	}
	chaos(t, 1, 8*time.Second, true)
}

// chaos is one run.
func chaos(t *testing.T, with uint64, length time.Duration, gentle bool) {
	t.Logf("seed %d, to be had again with: go test ./worker/chaos -run TestChaos -v -chaos %s -chaos-seed %d", with,
		length, with)
	ctx, cancel := context.WithTimeout(context.Background(), length+3*restLimit)
	defer cancel()
	dir := place(t)
	path := *binary
	if path == "" {
		path = build(ctx, t, dir)
	}
	timeline, err := os.Create(filepath.Join(dir, "timeline.log"))
	require.NoError(t, err)
	defer timeline.Close()
	s := newStack(ctx, t, dir, path)
	m := newModel(s.groups, timeline)
	d, hangUp, err := newDriver(s, m, rand.New(rand.NewPCG(with, 1)))
	require.NoError(t, err)
	defer hangUp()
	require.NoError(t, d.rest(ctx, 3*time.Minute), "the product starts")

	began := time.Now()
	play(ctx, d, &monkey{s: s, rng: rand.New(rand.NewPCG(with, 2)), m: m, gentle: gentle}, length)
	m.note("judge", "quiet")
	quietAt := time.Now()
	if err := d.rest(ctx, restLimit); err != nil {
		m.violate("not at rest after %s: %v", restLimit, err)
	}
	restIn := time.Since(quietAt)
	m.note("judge", "at rest after %s; everything is deleted now", restIn)
	if err := d.empty(ctx, restLimit); err != nil {
		m.violate("not empty after %s: %v", restLimit, err)
	}
	if err := until(ctx, time.Minute, func() error { return s.closed(ctx) }); err != nil {
		m.violate("%v", err)
	}
	runs, continued, err := s.histories(ctx, m.violate)
	if err != nil {
		m.violate("histories: %v", err)
	}
	t.Logf("CHAOS seed=%d %s rest=%.0fs all=%.0fs runs=%d continued=%d violations=%d", with, m, restIn.Seconds(),
		time.Since(began).Seconds(), runs, continued, len(m.verdict()))
	if bad := m.verdict(); len(bad) > 0 {
		t.Errorf("seed %d:\n%s\nlast of the timeline:\n%s\nremains: %s", with, strings.Join(bad, "\n"), tail(timeline, 40),
			dir)
	}
}

// place is the run's directory.
func place(t *testing.T) string {
	t.Helper()
	if *keep != "" {
		require.NoError(t, os.MkdirAll(*keep, 0o755))
		return *keep
	}
	dir, err := os.MkdirTemp("", "liqo-autoscaler-chaos")
	require.NoError(t, err)
	t.Cleanup(func() {
		if !t.Failed() {
			_ = os.RemoveAll(dir)
		}
	})
	return dir
}

// play lets the monkey and the driver work until the time is up or something is violated, and returns once all is
// mended.
func play(ctx context.Context, d *driver, k *monkey, length time.Duration) {
	playing, stop := context.WithTimeout(ctx, length)
	defer stop()
	var both sync.WaitGroup
	both.Go(func() { k.run(playing, ctx) })
	both.Go(func() { d.run(playing) })
	both.Go(func() {
		for wait.For(playing, 200*time.Millisecond) {
			if err := d.s.stamps(); err != nil {
				d.m.violate("%v", err)
			}
			for _, p := range d.s.all() {
				if p.died() {
					d.m.violate("%s has ended by itself, see %s", p.name, p.log)
				}
			}
			if len(d.m.verdict()) > 0 {
				stop()
			}
		}
	})
	both.Wait()
}

// tail is the last lines of a file.
func tail(f *os.File, n int) string {
	text, err := os.ReadFile(f.Name())
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
