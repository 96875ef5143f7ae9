package production

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/player"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/proc"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/temporal"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/temporal/dev"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/test/simworld"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

func TestMain(m *testing.M) {
	dev.ClearEnvironment()
	os.Exit(m.Run())
}

// measure prints a figure for docs/temporal.md.
func measure(what string, took time.Duration) {
	fmt.Printf("MEASURED %s %.2f s\n", what, took.Seconds())
}

// stack holds Temporal, two workers and two gRPC servers.
type stack struct {
	t        *testing.T
	ctx      context.Context
	dir      string // logs and files
	binary   string // our program
	temporal *temporal.Server
	world    *simworld.World
	env      []string // how our processes reach Temporal
	workers  [2]*member
	servers  [2]*member
	ca       *player.Player
}

// member is one of our processes, which may be killed and started again in the same way.
type member struct {
	*proc.Process
	spec    proc.Spec
	address string // address of a gRPC server
}

func (m *member) start(t *testing.T) {
	t.Helper()
	p, err := proc.Start(m.spec)
	require.NoError(t, err)
	m.Process = p
}

const groupsText = `
nodeGroups:
- id: std
  max: 60
  shape: {cpu: "2", memory: 4Gi, pods: "110"}
  budgets: {peer: 60s, join: 60s, total: 8m, drain: 5s}
`

// newStack starts the whole stack, on a Temporal that it has prepared.
func newStack(t *testing.T) *stack {
	t.Helper()
	s := &stack{t: t, ctx: t.Context(), dir: filepath.Join(os.TempDir(), "liqo-autoscaler-e2e", "production")}
	require.NoError(t, os.RemoveAll(s.dir))
	require.NoError(t, os.MkdirAll(s.dir, 0o755))
	s.binary = filepath.Join(s.dir, "liqo-autoscaler")
	build := exec.CommandContext(s.ctx, "go", "build", "-o", s.binary, "./cmd/liqo-autoscaler")
	_, file, _, _ := runtime.Caller(0)
	build.Dir = filepath.Join(filepath.Dir(file), "..", "..")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	s.temporal = temporal.New(t, s.dir)
	s.env = s.temporal.Environment(nil)

	out, code := s.cli(t, s.env, "temporal", "setup", "--wait", "1m")
	require.Zero(t, code, "%s", out)
	s.world = simworld.New(t, s.dir, sim.Delays{Peer: time.Second, Join: 3 * time.Second, Leave: 300 * time.Millisecond,
		Unpeer: 300 * time.Millisecond, Register: 500 * time.Millisecond},
		simworld.Provider{Name: "milan", Offer: "lendable: {cpu: 60, memory: 120Gi, pods: 3300}, price: 1, lingerSeconds: 0"},
		simworld.Provider{Name: "genoa", Offer: "lendable: {cpu: 60, memory: 120Gi, pods: 3300}, price: 1, lingerSeconds: 0"})
	require.NoError(t, os.WriteFile(s.in("groups.yaml"), []byte(groupsText), 0o600))
	s.startOurs()
	s.ca = player.New(t, "std", s.servers[0].address, s.servers[1].address)
	s.ca.Until(3*time.Minute, "the group is served", func() error { _, err := s.ca.Look(); return err })
	return s
}

func (s *stack) in(name string) string { return filepath.Join(s.dir, name) }

// published is the flag with which the processes share their data about the offers, and an operator's commands read it.
func (s *stack) published() []string { return []string{"--market-file", s.in("market.json")} }

func (s *stack) startOurs() {
	ports := testkit.FreePorts(s.t, 2)
	common := append([]string{"--metrics-listen", "", "--health-listen", ""}, s.published()...)
	for i := range 2 {
		s.workers[i] = &member{spec: proc.Spec{Name: fmt.Sprint("worker", i), Path: s.binary, Env: s.env, LogDir: s.dir,
			Args: append([]string{"worker", "--backend", "sim", "--world", s.world.Path(), "--offers", s.world.Offers()},
				common...)}}
		s.servers[i] = &member{address: ports[i], spec: proc.Spec{Name: fmt.Sprint("grpcserver", i), Path: s.binary,
			Env: s.env, LogDir: s.dir, Args: append([]string{"grpcserver", "--config", s.in("groups.yaml"), "--listen", ports[i],
				"--insecure-plaintext"}, common...)}}
	}
	for _, m := range s.ours() {
		m.start(s.t)
		s.t.Cleanup(func() { m.Kill() })
	}
}

func (s *stack) ours() []*member { return append(s.workers[:], s.servers[:]...) }

// cli runs one of our commands to its end.
func (s *stack) cli(t *testing.T, env []string, args ...string) (out []byte, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.binary, args...)
	cmd.Env = append(os.Environ(), env...)
	out, _ = cmd.CombinedOutput()
	require.NotNil(t, cmd.ProcessState, "%s", out)
	require.NoError(t, ctx.Err(), "%v does not end: %s", args, out)
	return out, cmd.ProcessState.ExitCode()
}

// whole checks that CA's view equals the objects that exist (invariant I9): n instances run, and each has exactly one
// object of each kind.
func (s *stack) whole(n int) error {
	seen, err := s.ca.Look()
	if err != nil {
		return err
	}
	if seen.Target != n || len(seen.Running) != n || len(seen.Listed) != n {
		return fmt.Errorf("%d wanted, CA sees target %d, %d running of %d", n, seen.Target, len(seen.Running),
			len(seen.Listed))
	}
	w, err := s.world.Snapshot()
	if err != nil {
		return err
	}
	c := w.Counts()
	if c.Slices != n || c.RemoteSlices != n || c.VirtualNodes != n || c.Nodes != n || c.Ready != n || c.Stamped != n {
		return fmt.Errorf("%d wanted, there are %+v", n, c)
	}
	for name, node := range w.Consumer.Nodes {
		if id := node.Spec.ProviderID; !seen.Running[id] {
			return fmt.Errorf("node %s carries %q, which does not run", name, id)
		}
		delete(seen.Running, node.Spec.ProviderID) // each once
	}
	return nil
}

// empty deletes all instances and waits until no object is left, including peerings. A provider whose entity was lost
// with the database recovers and removes nothing for five minutes.
func (s *stack) empty() {
	s.t.Helper()
	s.ca.Wanted = 0
	s.ca.Until(10*time.Minute, "all is released", func() error {
		if err := s.ca.Loop(); err != nil {
			return err
		}
		if err := s.whole(0); err != nil {
			return err
		}
		w, err := s.world.Snapshot()
		if err == nil && w.Counts() != (sim.Counts{}) {
			err = fmt.Errorf("there are %+v", w.Counts())
		}
		return err
	})
}
