package faults

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/player"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/proc"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/temporal/dev"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/test/simworld"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

func TestMain(m *testing.M) {
	dev.ClearEnvironment()
	os.Exit(m.Run())
}

// limit bounds a step on a busy machine.
const limit = 5 * time.Minute

const groupsText = `
nodeGroups:
- id: std
  max: 30
  shape: {cpu: "2", memory: 4Gi, pods: "110"}
  budgets: {peer: 60s, join: 2m, total: 12m, drain: 5s, unready: 60s}
`

// stack holds Temporal and the processes of a hub, which the test stops and starts.
type stack struct {
	t       *testing.T
	dir     string
	binary  string
	groups  string
	address string // of Temporal
	listen  string // of the gRPC server

	temporal *proc.Process
	server   *proc.Process
	workers  [2]*proc.Process
	world    *simworld.World
	ca       *player.Player
	// pace is the pause before each time at which CA reads the group.
	pace time.Duration
	// carried maps each instance id to the UID of the Node that has carried it.
	carried map[string]string
}

// newStack starts a hub with two providers. The first provider is cheaper and has room for ten nodes.
func newStack(t *testing.T, binary string) *stack {
	t.Helper()
	ports := testkit.FreePorts(t, 2)
	s := &stack{t: t, dir: t.TempDir(), binary: binary, address: ports[0], listen: ports[1], carried: map[string]string{}}
	const offer = "lendable: {cpu: %d, memory: %dGi, pods: %d}, price: %d, lingerSeconds: 600"
	s.world = simworld.New(t, s.dir, sim.Delays{Peer: time.Second, Join: 4 * time.Second, Leave: 2 * time.Second,
		Unpeer: 300 * time.Millisecond, Register: 500 * time.Millisecond},
		simworld.Provider{Name: "milan", Offer: fmt.Sprintf(offer, 20, 40, 1100, 1)},
		simworld.Provider{Name: "genoa", Offer: fmt.Sprintf(offer, 80, 160, 4400, 2)})
	s.groups = filepath.Join(s.dir, "groups.yaml")
	require.NoError(t, os.WriteFile(s.groups, []byte(groupsText), 0o600))
	s.startTemporal()
	s.startAll()
	s.ca = player.New(t, "std", s.listen)
	return s
}

// startTemporal starts the dev server on the file of the previous start.
func (s *stack) startTemporal() {
	s.t.Helper()
	s.temporal = dev.Start(s.t, s.address, s.database(), s.dir)
}

func (s *stack) database() string { return filepath.Join(s.dir, "temporal.db") }

// startAll starts the gRPC server and both workers.
func (s *stack) startAll() {
	s.t.Helper()
	s.server = s.start("grpcserver", "grpcserver", "--config", s.groups, "--listen", s.listen, "--insecure-plaintext")
	for n := range s.workers {
		s.workers[n] = s.work(n, s.world)
	}
}

// work starts a worker for a world.
func (s *stack) work(n int, in *simworld.World) *proc.Process {
	s.t.Helper()
	return s.start(fmt.Sprint("worker-", n), "worker", "--backend", "sim", "--world", in.Path(), "--offers", in.Offers())
}

func (s *stack) start(name string, args ...string) *proc.Process {
	s.t.Helper()
	p, err := proc.Start(proc.Spec{Name: name, Path: s.binary, LogDir: s.dir,
		// Temporal's SDK treats a task of more than a second as a deadlock, which is wrong on a busy machine.
		Env:  []string{"TEMPORAL_ADDRESS=" + s.address, "TEMPORAL_DEBUG=1"},
		Args: append(args, "--metrics-listen", "", "--health-listen", "")})
	require.NoError(s.t, err)
	s.t.Cleanup(p.Kill)
	return p
}

// killAll ends the gRPC server and both workers as a power cut would.
func (s *stack) killAll() {
	s.server.Kill()
	for _, w := range s.workers {
		w.Kill()
	}
}

// nodes returns the UIDs of all Nodes that carry an instance id, by this id. It fails the test if an id is on another
// Node than before.
func (s *stack) nodes() map[string]string {
	s.t.Helper()
	w, err := s.world.Snapshot()
	require.NoError(s.t, err)
	now := map[string]string{}
	for _, node := range w.Consumer.Nodes {
		if id := node.Spec.ProviderID; id != "" {
			now[id] = string(node.UID)
			if was := s.carried[id]; was != "" {
				require.Equal(s.t, was, now[id], "the id %s is on a second Node", id)
			}
			s.carried[id] = now[id]
		}
	}
	return now
}

// holds fails the test unless all these Nodes still exist.
func (s *stack) holds(kept map[string]string) {
	s.t.Helper()
	now := s.nodes()
	for id, uid := range kept {
		require.Equal(s.t, uid, now[id], "the healthy Node of %s", id)
	}
}

// rest acts as CA until the group is at rest with n nodes. In the meantime the Nodes kept stay. CA deletes failed
// instances and surplus instances, and of these never a kept one.
func (s *stack) rest(n int, kept map[string]string) {
	s.t.Helper()
	s.ca.Wanted = n
	s.ca.Until(limit, fmt.Sprintf("the group is at rest with %d nodes", n), func() error {
		s.holds(kept)
		<-time.After(s.pace)
		seen, err := s.ca.Look()
		if err != nil {
			return err
		}
		if len(seen.Failed) > 0 {
			return errors.Join(s.ca.Remove(seen.Failed), fmt.Errorf("failed: %v", seen.Failed))
		}
		if seen.Target < n {
			return errors.Join(s.ca.Grow(n-seen.Target), fmt.Errorf("target %d", seen.Target))
		}
		if seen.Target > n {
			surplus := slices.DeleteFunc(seen.Listed, func(id string) bool { return kept[id] != "" })
			return errors.Join(s.ca.Remove(surplus[:min(len(surplus), seen.Target-n)]), fmt.Errorf("target %d", seen.Target))
		}
		w, err := s.world.Snapshot()
		if err != nil {
			return err
		}
		c := w.Counts()
		if len(seen.Running) != n || c.Slices != n || c.RemoteSlices != n || c.VirtualNodes != n || c.Ready != n {
			return fmt.Errorf("CA sees %d running, there are %+v", len(seen.Running), c)
		}
		return nil
	})
	s.holds(kept)
}

// during checks for this time that the Nodes kept stay.
func (s *stack) during(d time.Duration, kept map[string]string) {
	s.t.Helper()
	tick, end := time.NewTicker(time.Second), time.After(d)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.holds(kept)
		case <-end:
			return
		}
	}
}

// slices returns the number of slices that exist in the consumer.
func (s *stack) slices() int {
	s.t.Helper()
	w, err := s.world.Snapshot()
	require.NoError(s.t, err)
	return w.Counts().Slices
}

// TestFaults runs each part on a hub of its own.
func TestFaults(t *testing.T) {
	binary := proc.Build(t, proc.Root())
	for _, part := range slices.Concat(restores, leaders, others, limits) {
		t.Run(part.name, func(t *testing.T) {
			t.Parallel() // the parts mostly wait
			part.run(newStack(t, binary))
		})
	}
}

// part is one part of the suite.
type part struct {
	name string
	run  func(*stack)
}
