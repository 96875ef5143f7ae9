package chaos

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// run is one run of the suite: the processes, CA, and the model of CA's beliefs.
type run struct {
	t        *testing.T
	seed     uint64
	dir      string
	timeline *os.File
	s        *stack
	m        *model
	d        *driver
	began    time.Time
	restIn   time.Duration
}

// drawn returns the seed from the command line, or a random seed.
func drawn() uint64 {
	if *seed != 0 {
		return *seed
	}
	return uint64(time.Now().UnixNano()) % 1_000_000
}

// newRun starts all processes and returns when nothing changes any more.
func newRun(ctx context.Context, t *testing.T, with uint64, l layout) *run {
	t.Helper()
	dir, path := place(t), *binary
	if path == "" {
		path = build(ctx, t, dir)
	}
	return runOn(ctx, t, with, newStack(ctx, t, dir, path, l))
}

// runOn is like newRun, but uses a stack whose processes already run.
func runOn(ctx context.Context, t *testing.T, with uint64, s *stack) *run {
	t.Helper()
	r := &run{t: t, seed: with, dir: s.dir, s: s}
	var err error
	r.timeline, err = os.Create(filepath.Join(r.dir, "timeline.log"))
	require.NoError(t, err)
	t.Cleanup(func() { r.timeline.Close() })
	r.m = newModel(r.s.groups, r.timeline)
	d, hangUp, err := newDriver(r.s, r.m, rand.New(rand.NewPCG(with, 1)))
	require.NoError(t, err)
	t.Cleanup(hangUp)
	r.d = d
	require.NoError(t, r.d.rest(ctx, 3*time.Minute, false), "the product starts")
	r.began = time.Now()
	return r
}

// quiet waits until nothing changes any more, and checks that CA's view equals the objects that exist.
func (r *run) quiet(ctx context.Context, help bool) {
	r.m.note("judge", "quiet")
	began := time.Now()
	if err := r.d.rest(ctx, restLimit, help); err != nil {
		r.m.violate("not at rest after %s: %v", restLimit, err)
	}
	r.restIn = time.Since(began)
	r.m.note("judge", "at rest after %s", r.restIn)
}

// end deletes all instances, checks all histories, and logs the result of the run in one line.
func (r *run) end(ctx context.Context, name string) {
	r.t.Helper()
	r.m.note("judge", "everything is deleted now")
	if err := r.d.empty(ctx, restLimit); err != nil {
		r.m.violate("not empty after %s: %v", restLimit, err)
	}
	forgotten := 0
	err := until(ctx, time.Minute, func() error { return r.s.closed(ctx) })
	if err != nil {
		forgotten = r.forget(ctx)
		err = r.s.closed(ctx)
	}
	if err != nil {
		r.m.violate("%v", err)
	}
	runs, continued, err := r.s.histories(ctx, r.m.violate)
	if err != nil {
		r.m.violate("histories: %v", err)
	}
	bad := r.m.verdict()
	r.t.Logf("%s seed=%d %s rest=%.0fs all=%.0fs runs=%d continued=%d forgotten=%d violations=%d", name, r.seed, r.m,
		r.restIn.Seconds(), time.Since(r.began).Seconds(), runs, continued, forgotten, len(bad))
	if len(bad) > 0 {
		r.t.Errorf("seed %d:\n%s\nlast of the timeline:\n%s\nremains: %s", r.seed, strings.Join(bad, "\n"),
			tail(r.timeline, 40), r.dir)
	}
}

// place returns the directory of the run. It is in memory if possible, because a database on a disk makes Temporal
// slow.
func place(t *testing.T) string {
	t.Helper()
	if *keep != "" {
		dir := filepath.Join(*keep, t.Name())
		require.NoError(t, os.MkdirAll(dir, 0o755))
		return dir
	}
	parent := ""
	if _, err := os.Stat("/dev/shm"); err == nil && os.Getenv("TMPDIR") == "" {
		parent = "/dev/shm"
	}
	dir, err := os.MkdirTemp(parent, "liqo-autoscaler-chaos")
	require.NoError(t, err)
	t.Cleanup(func() {
		if !t.Failed() {
			_ = os.RemoveAll(dir)
		}
	})
	return dir
}

// tail returns the last lines of a file.
func tail(f *os.File, n int) string {
	text, err := os.ReadFile(f.Name())
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
