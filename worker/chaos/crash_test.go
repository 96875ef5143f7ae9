package chaos

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/test/simworld"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/failpoint"
)

var (
	crashes = flag.Int("crash", 0, "kills of the crash matrix, at least; 0: TestCrash is skipped")
	crashed = flag.Bool("crash-short", false,
		"a shorter crash test: it ends after the given number of kills, and does not cover all points")
)

// These constants are the numbers of points in one life of an instance at which a process may be killed. With more
// points in a life, fewer lives cover all points, but a failure is harder to attribute to one point.
const (
	dealt      = 2
	dealtShort = 4
)

// These constants are the kinds of lives. In a failover life, the first provider refuses the objects that are made
// there.
const (
	plain    = "plain"
	failover = "failover"
)

// kindsOfLives has an entry for each fleet: the kind of the fleet's lives. The processes of different fleets are
// killed independently.
var kindsOfLives = []string{plain, plain, plain, failover, failover, failover, failover, failover}

// TestCrash kills workers and gRPC servers with SIGKILL. Each side effect that was observed in the life of an
// instance has two points: before the effect and after it. In each life a process is killed at up to two points, or
// at up to four with -crash-short. Many lives together cover all points. In each life the instance still reaches its
// Node, and the world is empty at the end.
func TestCrash(t *testing.T) {
	if *crashes <= 0 {
		t.Skip("run make chaos SUITE=crash")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Minute)
	defer cancel()
	began, c := time.Now(), newCrash(ctx, t, drawn())
	c.each(func(f *crashFleet) {
		if f.first { // the first life of a fleet has effects that never occur again
			lives := []*failpoint.Life{failpoint.Undisturbed(), failpoint.Undisturbed(), failpoint.Undisturbed()}
			for _, life := range lives {
				f.live(ctx, life)
			}
			c.matrix.Derive(f.kind, lives[1:]...)
		}
	})
	t.Logf("derived %d points", len(c.matrix.Unreached()))
	c.each(func(f *crashFleet) {
		for life := c.deal(f.kind); life != nil && len(f.m.verdict()) == 0; life = c.deal(f.kind) {
			f.live(ctx, life)
		}
		f.end(ctx, f.s.namespace)
	})
	points, kills := c.matrix.Count()
	unreached := c.matrix.Unreached()
	t.Log("nobody was killed at ", strings.Join(unreached, "; "))
	t.Logf("CRASH failpoints=%d kills=%d lives=%d converged=%d lost=%d leaked=%d double=%d unreached=%d seed=%d all=%.0fs",
		points, kills, c.lives, c.lives-c.lost-c.leaked-c.double, c.lost, c.leaked, c.double, len(unreached), c.seed,
		time.Since(began).Seconds())
	require.GreaterOrEqual(t, kills, *crashes)
	if !*crashed {
		require.GreaterOrEqual(t, points, 40, "the lives had hardly any effects")
	}
}

// crash is one run of TestCrash.
type crash struct {
	seed   uint64
	matrix *failpoint.Matrix
	fleets []*crashFleet

	mu                          sync.Mutex
	lives, lost, leaked, double int
}

// newCrash starts Temporal and the fleets. Each fleet has its own Temporal namespace.
func newCrash(ctx context.Context, t *testing.T, seed uint64) *crash {
	t.Helper()
	c := &crash{seed: seed, matrix: failpoint.New(seed, *crashes)}
	dir := place(t)
	suite := map[bool]string{false: "crash", true: "short"}[*crashed]
	t.Logf("seed %d, to be had again with: make chaos SUITE=%s SEED=%d; remains of a failure: %s", seed, suite, seed, dir)
	ports := testkit.FreePorts(t, 1+len(kindsOfLives))
	var namespaces []string
	for n := range kindsOfLives {
		namespaces = append(namespaces, "--namespace", namespaceOf(n))
	}
	temporal := temporalAt(t, ports[0], dir, namespaces...)
	startAll(t, temporal)
	known := map[string]bool{}
	for n, kind := range kindsOfLives {
		f := newFleet(ctx, t, filepath.Join(dir, namespaceOf(n)), temporal, ports[0], ports[1+n])
		f.run = runOn(ctx, t, seed+uint64(n), f.stack)
		f.c, f.kind, f.first = c, kind, !known[kind]
		known[kind] = true
		if kind == failover {
			require.NoError(t, f.s.world.SetKnobs(ctx, "p1", sim.Knobs{Refuse: backend.StageResources, Message: "not today"}))
		}
		c.fleets = append(c.fleets, f)
	}
	return c
}

func namespaceOf(n int) string { return fmt.Sprintf("fleet%d", n) }

func (c *crash) each(do func(*crashFleet)) {
	var all sync.WaitGroup
	for _, f := range c.fleets {
		all.Go(func() { do(f) })
	}
	all.Wait()
}

// deal returns the points of the next life, or nil when enough processes have been killed.
func (c *crash) deal(kind string) *failpoint.Life {
	if !*crashed {
		return c.matrix.Deal(kind, dealt)
	}
	if _, kills := c.matrix.Count(); kills >= *crashes {
		return nil
	}
	return c.matrix.Deal(kind, dealtShort)
}

// ended counts a life and its fault, if it had one.
func (c *crash) ended(fault *int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lives++
	if fault != nil {
		*fault++
	}
}

// roomy is a layout in which there is always capacity for the instance.
var roomy = layout{
	groups: `defaults:
  shape: {cpu: "2", memory: 4Gi, pods: "110"}
  budgets: {peer: 60s, network: 60s, join: 60s, total: 4m, drain: 5s}
nodeGroups:
- {id: red, min: 0, max: 4}
`,
	most: map[string]int{"red": 4},
	providers: []simworld.Provider{
		{Name: "p1", Offer: "lendable: {cpu: 16, memory: 32Gi, pods: 880}, price: 1, lingerSeconds: 0"},
		{Name: "p2", Offer: "lendable: {cpu: 16, memory: 32Gi, pods: 880}, price: 2, lingerSeconds: 0"},
	},
	delays: sim.Delays{
		Peer: 60 * time.Millisecond, Join: 60 * time.Millisecond, Leave: 40 * time.Millisecond,
		Unpeer: 40 * time.Millisecond, Register: 500 * time.Millisecond,
	},
}

// crashFleet is one worker, one gRPC server and their world. It runs one life after another.
type crashFleet struct {
	*run
	c     *crash
	stack *stack
	kind  string
	first bool // first fleet of its kind
	gate  *gate
}

// newFleet starts a fleet. Its Temporal namespace has the name of its folder.
func newFleet(ctx context.Context, t *testing.T, dir string, temporal *process, address, listen string) *crashFleet {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	s := &stack{dir: dir, groups: roomy.most, addresses: []string{listen}, namespace: filepath.Base(dir),
		temporal: temporal}
	s.files(t, roomy)
	s.connect(ctx, t, address)
	g := newGate(t)
	for _, role := range []string{roleWorker, roleServer} {
		g.processes[role] = s.child(role, s.namespace+" "+role, address, envParent+"="+g.url, envListen+"="+listen)
	}
	s.workers, s.servers = []*process{g.processes[roleWorker]}, []*process{g.processes[roleServer]}
	startAll(t, g.processes[roleWorker], g.processes[roleServer])
	return &crashFleet{stack: s, gate: g}
}

// child returns a process that runs this test binary in a role, with additional environment variables.
func (s *stack) child(role, name, temporal string, more ...string) *process {
	log := filepath.Join(s.dir, strings.ReplaceAll(name, " ", "-")+".log")
	return &process{name: name, log: log, argv: os.Args[:1],
		env: append([]string{envRole + "=" + role, envTemporal + "=" + temporal, envNamespace + "=" + s.namespace,
			envWorld + "=" + s.world.Path(), envOffers + "=" + s.world.Offers(),
			envGroups + "=" + filepath.Join(s.dir, "nodegroups.yaml")}, more...)}
}

// live makes CA want one instance, and then none. At the end the fleet is in its initial state.
func (f *crashFleet) live(ctx context.Context, life *failpoint.Life) {
	f.gate.begin(life, f.m)
	defer f.gate.begin(nil, f.m)
	if err := f.grown(ctx); err != nil {
		f.m.violate("lost: no Node after %s: %v", restLimit, err)
		f.c.ended(&f.c.lost)
		return
	}
	err := f.d.empty(ctx, restLimit)
	if err == nil {
		err = until(ctx, restLimit, func() error { return f.s.closed(ctx) })
	}
	f.s.healthy(f.m)
	told := strings.Join(f.m.verdict(), "\n")
	switch {
	case strings.Contains(told, "nobody asked for"), strings.Contains(told, "both carry"):
		f.c.ended(&f.c.double)
	case err != nil:
		f.m.violate("leaked: something is left after %s: %v", restLimit, err)
		f.c.ended(&f.c.leaked)
	case told != "":
		f.c.ended(&f.c.lost)
	default:
		f.c.ended(nil)
	}
	f.m.note("test", "end of a life")
}

// grown repeats CA's loop until CA has its Node. It returns when nothing in the fleet changes any more.
func (f *crashFleet) grown(ctx context.Context) error {
	return testkit.Poll(ctx, restLimit, 100*time.Millisecond, func(ctx context.Context) error {
		f.s.healthy(f.m)
		seen := f.d.loop(ctx, func(seen map[string]listing) []op {
			if ops := asked(seen, func(i listed) bool { return i.failed }); len(ops) > 0 {
				return ops
			}
			if v, listed := seen["red"]; listed && v.target == 0 {
				return []op{{group: "red", kind: "grow", delta: 1, room: f.d.m.room("red", 1)}}
			}
			return nil
		})
		switch {
		case len(f.m.verdict()) > 0:
			return nil // the run ends there
		case len(seen) == 0 || seen["red"].target == 0:
			return errors.New("CA has asked for no Node, or has no good Refresh")
		}
		return f.s.whole(seen)
	})
}
