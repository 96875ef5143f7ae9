package hub

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/ca"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/proc"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/temporal"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// cell describes one hub that is measured.
type cell struct {
	groups, offers int
	room           int // for nodes in each offer
	rtt            time.Duration
}

func (c cell) String() string {
	return fmt.Sprintf("%dx%d-rtt%d", c.groups, c.offers, c.rtt.Milliseconds())
}

// peered returns the number of providers on which nodes are created.
func (c cell) peered() int {
	switch {
	case c.offers <= 20:
		return 10
	case c.offers <= 200:
		return 50
	default:
		return 100
	}
}

// stack is a hub with its processes.
type stack struct {
	t              *testing.T
	dir            string
	env            []string
	temporal       *temporal.Small // nil on PostgreSQL
	world          *sim.World
	worker, server *proc.Process
	workerMetrics  string
	client         protos.CloudProviderClient
	refreshes      int // the number of calls of Refresh
}

// delays are the delays of the simulated backend. A peering takes 300 ms, and a node takes 500 ms.
var delays = sim.Delays{Peer: 300 * time.Millisecond, Join: 500 * time.Millisecond, Leave: 200 * time.Millisecond,
	Unpeer: 200 * time.Millisecond}

// newStack starts the hub of a cell with this program.
func newStack(t *testing.T, program string, c cell) *stack {
	t.Helper()
	dir := t.TempDir()
	small := temporal.NewSmall(t, dir)
	s := connected(t, dir, program, c, small.Address, []string{"TEMPORAL_NAMESPACE=" + temporal.Namespace})
	s.temporal = small
	return s
}

// connected starts the hub of a cell with this program, on a running Temporal server. The environment variables
// describe the connection to Temporal, without the address.
func connected(t *testing.T, dir, program string, c cell, address string, env []string) *stack {
	t.Helper()
	s := &stack{t: t, dir: dir, env: env}
	setup := exec.CommandContext(t.Context(), program, "temporal", "setup", "--wait", "2m", "--temporal-address", address)
	setup.Env = append(os.Environ(), env...)
	out, err := setup.CombinedOutput()
	require.NoError(t, err, "%s", out)
	s.files(c)
	ports := testkit.FreePorts(t, 5)
	s.workerMetrics = "http://" + ports[0] + "/metrics"
	common := []string{"--temporal-address", delayed(t, address, c.rtt), "--market-file", s.in("market.json")}
	worker := append([]string{"worker", "--backend", "sim", "--world", s.in("world.json"), "--offers", s.in("offers.yaml"),
		"--metrics-listen", ports[0], "--health-listen", ports[1]}, common...)
	if *slots > 0 {
		worker = append(worker, "--driver-slots", strconv.Itoa(*slots))
	}
	s.worker = s.start(program, "worker", worker...)
	s.server = s.start(program, "grpcserver", append([]string{"grpcserver", "--config", s.in("groups.yaml"),
		"--insecure-plaintext", "--listen", ports[2], "--metrics-listen", ports[3], "--health-listen", ports[4]},
		common...)...)
	conn, err := ca.Dial(insecure.NewCredentials(), ports[2])
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	s.client = protos.NewCloudProviderClient(conn)
	return s
}

func (s *stack) in(name string) string { return filepath.Join(s.dir, name) }

func (s *stack) start(program, name string, args ...string) *proc.Process {
	s.t.Helper()
	p, err := proc.Start(proc.Spec{Name: name, Path: program, LogDir: s.dir, Args: args, Env: s.env})
	require.NoError(s.t, err)
	s.t.Cleanup(p.Kill)
	return p
}

// files writes the world, the offers and the node groups. All prices differ.
func (s *stack) files(c cell) {
	s.t.Helper()
	w, err := sim.Open(s.in("world.json"))
	require.NoError(s.t, err)
	var offers, groups strings.Builder
	offers.WriteString("offers:\n")
	require.NoError(s.t, w.Edit(s.t.Context(), func(state *sim.State) error {
		state.Delays = delays
		for n := range c.offers {
			id := fmt.Sprintf("p%d", n)
			state.Providers[id] = &sim.Provider{ID: id}
		}
		return nil
	}))
	for n := range c.offers {
		id := fmt.Sprintf("p%d", n)
		require.NoError(s.t, os.WriteFile(s.in(id+".kubeconfig"), w.Kubeconfig(id), 0o600))
		fmt.Fprintf(&offers, "- {name: %s, credentials: {kubeconfigFile: %s.kubeconfig}, price: %.4f, lingerSeconds: 600, "+
			"lendable: {cpu: %d, memory: %dGi, pods: %d}}\n", id, id, 1+float64(n)/1000, 2*c.room, 4*c.room, 110*c.room)
	}
	groups.WriteString("defaults:\n  max: 1000\n  shape: {cpu: \"2\", memory: 4Gi, pods: \"110\"}\n" +
		"  budgets: {unready: 60s}\nnodeGroups:\n")
	for n := range c.groups {
		fmt.Fprintf(&groups, "- id: g%d\n", n)
	}
	require.NoError(s.t, os.WriteFile(s.in("offers.yaml"), []byte(offers.String()), 0o600))
	require.NoError(s.t, os.WriteFile(s.in("groups.yaml"), []byte(groups.String()), 0o600))
	s.world = w
}

// call runs the function do with the timeout of CA's calls.
func (s *stack) call(do func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(s.t.Context(), 10*time.Second)
	defer cancel()
	return do(ctx)
}

func (s *stack) refresh() error {
	s.refreshes++
	return s.call(func(ctx context.Context) error {
		_, err := s.client.Refresh(ctx, &protos.RefreshRequest{})
		return err
	})
}

// served returns an error until the server answers for all node groups.
func (s *stack) served(groups int) error {
	if err := s.refresh(); err != nil {
		return err
	}
	for group := range groups {
		if _, err := s.running(group); err != nil {
			return err
		}
	}
	return nil
}

func (s *stack) grow(group, delta int) {
	s.t.Helper()
	testkit.Until(s.t, time.Minute, "IncreaseSize is answered", func() error {
		return s.call(func(ctx context.Context) error {
			_, err := s.client.NodeGroupIncreaseSize(ctx,
				&protos.NodeGroupIncreaseSizeRequest{Id: fmt.Sprintf("g%d", group), Delta: int32(delta)})
			return err
		})
	})
}

// running returns the number of running instances of a group.
func (s *stack) running(group int) (n int, err error) {
	err = s.call(func(ctx context.Context) error {
		nodes, err := s.client.NodeGroupNodes(ctx, &protos.NodeGroupNodesRequest{Id: fmt.Sprintf("g%d", group)})
		for _, i := range nodes.GetInstances() {
			if i.GetStatus().GetInstanceState() == protos.InstanceStatus_instanceRunning {
				n++
			}
		}
		return err
	})
	return n, err
}

// stamped waits until n Nodes are complete in the simulated world.
func (s *stack) stamped(n int) {
	s.t.Helper()
	testkit.Until(s.t, 3*time.Minute, fmt.Sprintf("%d Nodes are complete", n), func() error {
		w, err := s.world.Snapshot()
		if err == nil && w.Counts().Stamped != n {
			err = fmt.Errorf("%d are complete", w.Counts().Stamped)
		}
		return err
	})
}

// until waits until the number of running instances of a group is want. In the meantime it calls Refresh every
// second, as CA does. It returns the waiting time.
func (s *stack) until(limit time.Duration, group, want int) time.Duration {
	s.t.Helper()
	began, refreshed := time.Now(), time.Now()
	testkit.Until(s.t, limit, fmt.Sprintf("%d nodes of g%d run", want, group), func() error {
		if time.Since(refreshed) > time.Second {
			refreshed = time.Now()
			if err := s.refresh(); err != nil {
				return err
			}
		}
		n, err := s.running(group)
		if err == nil && n != want {
			err = fmt.Errorf("%d run", n)
		}
		return err
	})
	return time.Since(began)
}
