package upgrade

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/player"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/proc"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/temporal/dev"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/test/simworld"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/devserver"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

func TestMain(m *testing.M) {
	dev.ClearEnvironment()
	os.Exit(m.Run())
}

// limit bounds a step on a busy machine. The other constants are numbers of instances that CA wants. The constant
// stay counts the permanent instances, wave the instances that each wave creates and removes, and stuck the instances
// that are stuck on the dead provider.
const (
	limit = 5 * time.Minute
	stay  = 2
	wave  = 6
	stuck = 3
)

// deployment is the name of the Worker Deployment.
const deployment = "liqo-autoscaler"

const groupsText = `
defaults:
  shape: {cpu: "2", memory: 4Gi, pods: "110"}
  budgets: {peer: 90s, join: 3m, total: 15m, drain: 5s}
nodeGroups:
- {id: std, max: 20, selector: {matchLabels: {for: std}}}
- {id: doomed, max: 5, selector: {matchLabels: {for: doomed}}}
`

// stack holds Temporal, a gRPC server of this build, and the workers, which the test starts and ends.
type stack struct {
	t        *testing.T
	dir      string
	builds   builds
	env      []string
	address  string // of Temporal
	temporal client.Client
	world    *simworld.World
	std      *player.Player
	doomed   *player.Player
	workers  map[string]*proc.Process
	kept     map[string]string // UIDs of the permanent nodes, by instance id
	waves    int
}

func newStack(t *testing.T, dir string, b builds) *stack {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	ports := testkit.FreePorts(t, 2)
	s := &stack{t: t, dir: dir, builds: b, address: ports[0], workers: map[string]*proc.Process{},
		// Temporal's SDK treats a task of more than a second as a deadlock, which is wrong on a busy machine.
		env: []string{"TEMPORAL_ADDRESS=" + ports[0], "TEMPORAL_DEBUG=1"}}
	s.startTemporal()
	offer := "labels: {for: %s}, lendable: {cpu: 60, memory: 120Gi, pods: 3300}, price: 1, lingerSeconds: 0"
	s.world = simworld.New(t, dir, sim.Delays{Peer: time.Second, Join: 3 * time.Second, Leave: 300 * time.Millisecond,
		Unpeer: 300 * time.Millisecond, Register: 500 * time.Millisecond},
		simworld.Provider{Name: "milan", Offer: fmt.Sprintf(offer, "std")},
		simworld.Provider{Name: "genoa", Offer: fmt.Sprintf(offer, "std")},
		simworld.Provider{Name: "turin", Offer: fmt.Sprintf(offer, "doomed")})
	groups := filepath.Join(dir, "groups.yaml")
	require.NoError(t, os.WriteFile(groups, []byte(groupsText), 0o600))
	s.start("grpcserver", b.newer, "grpcserver", "--config", groups, "--listen", ports[1], "--insecure-plaintext")
	s.std, s.doomed = player.New(t, "std", ports[1]), player.New(t, "doomed", ports[1])
	return s
}

func (s *stack) startTemporal() {
	s.t.Helper()
	dev.Start(s.t, s.address, filepath.Join(s.dir, "temporal.db"), s.dir, "--sqlite-pragma", "synchronous=OFF",
		"--dynamic-config-value", `matching.PollerHistoryTTL="90s"`) // a poll takes up to 60 s
	var err error
	s.temporal, err = client.NewLazyClient(client.Options{HostPort: s.address, Logger: devserver.Quiet()})
	require.NoError(s.t, err)
	s.t.Cleanup(s.temporal.Close)
}

func (s *stack) start(name, binary string, args ...string) *proc.Process {
	s.t.Helper()
	p, err := proc.Start(proc.Spec{Name: name, Path: binary, Env: s.env, LogDir: s.dir,
		Args: append(args, "--metrics-listen", "", "--health-listen", "")})
	require.NoError(s.t, err)
	s.t.Cleanup(p.Kill)
	return p
}

// work starts a worker. The worker gets the flags of its backend and offers, and also the given flags.
func (s *stack) work(name, binary string, flags ...string) {
	s.t.Helper()
	s.workers[name] = s.start("worker-"+name, binary, append([]string{"worker", "--backend", "sim", "--world",
		s.world.Path(), "--offers", s.world.Offers()}, flags...)...)
}

// leave ends a worker with a signal, as an upgrade does.
func (s *stack) leave(name string) {
	s.t.Helper()
	require.NoError(s.t, s.workers[name].Stop(time.Minute), "worker %s", name)
	delete(s.workers, name)
}

// kill ends a worker as a power cut would.
func (s *stack) kill(name string) {
	s.workers[name].Kill()
	delete(s.workers, name)
}

// alive fails the test if a worker has ended although the test has not ended it.
func (s *stack) alive() {
	s.t.Helper()
	for name, p := range s.workers {
		select {
		case <-p.Done():
			require.Fail(s.t, "worker "+name+" ended without a signal", proc.Tail(p.Log, 20))
		default:
		}
	}
}

// current makes a version the current version when its workers poll all lanes (task queues).
func (s *stack) current(build string) {
	s.t.Helper()
	d := s.temporal.WorkerDeploymentClient().GetHandle(deployment)
	testkit.Until(s.t, limit, "version "+build+" polls all lanes", func() error {
		v, err := d.DescribeVersion(s.t.Context(), client.WorkerDeploymentDescribeVersionOptions{BuildID: build})
		if err == nil && len(v.Info.TaskQueuesInfos) < len(workflows.Lanes) {
			err = fmt.Errorf("only %d of %d task queues", len(v.Info.TaskQueuesInfos), len(workflows.Lanes))
		}
		return err
	})
	_, err := d.SetCurrentVersion(s.t.Context(), client.WorkerDeploymentSetCurrentVersionOptions{BuildID: build})
	require.NoError(s.t, err)
}

// begin creates the permanent instances and the instances that will be stuck.
func (s *stack) begin() {
	s.t.Helper()
	s.std.Wanted, s.doomed.Wanted = stay, stuck
	s.std.Until(limit, "the first instances run", func() error {
		return errors.Join(s.std.Loop(), s.doomed.Loop(), running(s.std, stay), running(s.doomed, stuck))
	})
	s.kept = s.nodes()
	doomed, err := s.doomed.Look()
	require.NoError(s.t, err)
	for _, id := range doomed.Listed {
		delete(s.kept, id)
	}
	require.Len(s.t, s.kept, stay)
	require.NoError(s.t, s.world.SetKnobs(s.t.Context(), "turin", sim.Knobs{Unreachable: true}))
	s.shrink(s.doomed, 0, doomed.Listed)
}

// shrink releases the instances with these ids, until the target size equals the parameter to.
func (s *stack) shrink(of *player.Player, to int, ids []string) {
	s.t.Helper()
	of.Until(limit, "instances are released", func() error {
		seen, err := of.Look()
		if err != nil {
			return err
		}
		left := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !slices.Contains(seen.Listed, id) })
		if len(left) > 0 {
			return errors.Join(of.Remove(left), fmt.Errorf("%d still count", len(left)))
		}
		if seen.Target != to {
			return fmt.Errorf("the target is %d, not %d", seen.Target, to)
		}
		return nil
	})
	of.Wanted = to
}

// wave makes CA want more instances and then fewer again. In the middle of the scale-outs it calls the given function.
func (s *stack) wave(what string, meanwhile func()) {
	s.t.Helper()
	s.std.Wanted = stay + wave
	s.std.Until(limit, what+": nodes are being made", func() error {
		w, err := s.world.Snapshot()
		if err = errors.Join(err, s.std.Loop()); err == nil && w.Counts().Slices <= stay {
			err = errors.New("no slice yet")
		}
		return err
	})
	if meanwhile != nil {
		meanwhile()
	}
	s.std.Until(3*limit, what+": all nodes run", func() error {
		s.alive()
		return errors.Join(s.std.Loop(), running(s.std, stay+wave))
	})
	s.unharmed()
	seen, err := s.std.Look()
	require.NoError(s.t, err)
	more := slices.DeleteFunc(seen.Listed, func(id string) bool { return s.kept[id] != "" })
	require.Len(s.t, more, wave)
	s.shrink(s.std, stay, more)
	s.unharmed()
	s.waves++
	s.t.Log("done:", what)
}

// unharmed fails the test when a permanent node is gone or was created again.
func (s *stack) unharmed() {
	s.t.Helper()
	now := s.nodes()
	for id, uid := range s.kept {
		require.Equal(s.t, uid, now[id], "the node of %s", id)
	}
}

// nodes returns the UIDs of all our Nodes, by instance id.
func (s *stack) nodes() map[string]string {
	s.t.Helper()
	w, err := s.world.Snapshot()
	require.NoError(s.t, err)
	out := map[string]string{}
	for _, n := range w.Consumer.Nodes {
		out[n.Spec.ProviderID] = string(n.UID)
	}
	return out
}

func running(p *player.Player, n int) error {
	seen, err := p.Look()
	if err == nil && (seen.Target != n || len(seen.Running) != n) {
		err = fmt.Errorf("%d wanted, CA sees target %d and %d running", n, seen.Target, len(seen.Running))
	}
	return err
}

// end makes the dead provider healthy, releases all instances, and checks the counts.
func (s *stack) end(m mode) {
	s.t.Helper()
	w, err := s.world.Snapshot()
	require.NoError(s.t, err)
	require.GreaterOrEqual(s.t, w.Counts().RemoteSlices, stay+stuck, "the dead provider gave slices back")
	require.NoError(s.t, s.world.SetKnobs(s.t.Context(), "turin", sim.Knobs{}))
	s.std.Wanted = 0
	s.std.Until(2*limit, "nothing is left", func() error {
		s.alive()
		if err := s.std.Loop(); err != nil {
			return err
		}
		w, err := s.world.Snapshot()
		if err == nil && w.Counts() != (sim.Counts{}) {
			err = fmt.Errorf("there are %+v", w.Counts())
		}
		return errors.Join(err, running(s.std, 0), running(s.doomed, 0))
	})
	var c counts
	s.std.Until(limit, "every workflow that ends has ended", func() error {
		var err error
		c, err = s.count()
		return err
	})
	s.judge(m, c)
}
