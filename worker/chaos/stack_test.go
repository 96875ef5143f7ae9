package chaos

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdkworker "go.temporal.io/sdk/worker"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/test/simworld"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/devserver"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// process is a process that the test can kill and start again in the same way.
type process struct {
	name string
	argv []string
	env  []string // added to the test's own environment
	log  string

	mu      sync.Mutex
	cmd     *exec.Cmd
	ended   chan struct{}
	killing bool // the test ends the process, so its end does not count as a defect
	life    int  // grows before a kill, so that a failed call can be distinguished from a defect
}

func (p *process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.Command(p.argv[0], p.argv[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.Env = out, out, append(os.Environ(), p.env...)
	if _, err = cmd.StdinPipe(); err == nil { // the process ends when the test ends
		err = cmd.Start()
	}
	if err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	p.cmd, p.ended, p.killing = cmd, ended, false
	return nil
}

// kill ends the process with SIGKILL and returns when it is gone. It also ends a stopped process.
func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return
	}
	p.life++
	p.killing = true
	_ = p.cmd.Process.Kill()
	<-p.ended
	p.cmd = nil
}

// leave ends the process with a signal, as an upgrade does, and returns when it is gone. After the limit it kills the
// process.
func (p *process) leave(limit time.Duration) {
	p.mu.Lock()
	p.life++
	p.killing = true
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	ended := p.ended
	p.mu.Unlock()
	select {
	case <-ended:
	case <-time.After(limit):
	}
	p.kill()
}

// signal sends SIGSTOP or SIGCONT.
func (p *process) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		_ = p.cmd.Process.Signal(s)
	}
}

func (p *process) lives() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.life
}

// pid returns the id of the running process, or 0.
func (p *process) pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return 0
	}
	return p.cmd.Process.Pid
}

// died reports whether the process ended although the test did not end it.
func (p *process) died() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil || p.killing {
		return false
	}
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// stack holds all processes of a run, and their files.
type stack struct {
	dir       string
	world     *simworld.World
	providers []string
	groups    map[string]int // highest max of a run, by id
	least     map[string]int // the lowest max of a run, for a config that changes; 0: the config may lack the group
	temporal  *process
	workers   []*process
	servers   []*process
	addresses []string // addresses of the servers
	namespace string   // namespace in Temporal
	api       client.Client
	replays   sdkworker.WorkflowReplayerOptions
}

// lists reports whether all groups that the config always contains are listed.
func (s *stack) lists(seen map[string]listing) bool {
	for id := range s.groups {
		least, changes := s.least[id]
		if _, listed := seen[id]; !listed && (!changes || least > 0) {
			return false
		}
	}
	return true
}

func (s *stack) all() []*process {
	return append(append([]*process{s.temporal}, s.workers...), s.servers...)
}

// layout describes a stack, except Temporal and the two gRPC servers.
type layout struct {
	groups    string         // the file of node groups
	most      map[string]int // max of each group
	providers []simworld.Provider
	delays    sim.Delays
	workers   int
	flags     []string // flags of each worker
}

// newStack starts all processes. They end with the test.
func newStack(ctx context.Context, t *testing.T, dir, binary string, l layout) *stack {
	t.Helper()
	ports := testkit.FreePorts(t, 3)
	s := &stack{dir: dir, groups: l.most, addresses: ports[1:], namespace: client.DefaultNamespace}
	s.files(t, l)
	in := func(name string) string { return filepath.Join(dir, name) }
	s.temporal = temporalAt(t, ports[0], dir)
	common := []string{"--temporal-address", ports[0], "--metrics-listen", "", "--health-listen", ""}
	for i := range l.workers {
		name := fmt.Sprintf("worker%d", i)
		argv := append([]string{binary, "worker", "--backend", "sim", "--world", s.world.Path(), "--offers",
			s.world.Offers()}, common...)
		s.workers = append(s.workers, &process{name: name, log: in(name + ".log"), argv: append(argv, l.flags...)})
	}
	for i, address := range s.addresses {
		name := fmt.Sprintf("grpcserver%d", i)
		s.servers = append(s.servers, &process{name: name, log: in(name + ".log"), argv: append([]string{binary,
			"grpcserver", "--config", in("nodegroups.yaml"), "--listen", address, "--insecure-plaintext"}, common...)})
	}
	startAll(t, s.all()...)
	s.connect(ctx, t, ports[0])
	return s
}

// files writes the world, the offers and the node groups.
func (s *stack) files(t *testing.T, l layout) {
	t.Helper()
	for _, p := range l.providers {
		s.providers = append(s.providers, p.Name)
	}
	s.world = simworld.New(t, s.dir, l.delays, l.providers...)
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "nodegroups.yaml"), []byte(l.groups), 0o600))
}

// temporalAt returns a dev server whose database is in dir. more holds additional flags.
func temporalAt(t *testing.T, address, dir string, more ...string) *process {
	t.Helper()
	cli, err := devserver.CLI()
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	argv := []string{
		cli, "server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", port, "--db-filename",
		filepath.Join(dir, "temporal.db"), "--sqlite-pragma", "synchronous=OFF", "--log-level", "error",
		"--sqlite-pragma", "journal_mode=WAL", // otherwise the copy for a backup would block the server's writes
	}
	for _, attribute := range workflows.SearchAttributes {
		argv = append(argv, "--search-attribute", attribute+"=Keyword")
	}
	return &process{name: "temporal", log: filepath.Join(dir, "temporal.log"), argv: append(argv, more...)}
}

// startAll starts processes that end with the test.
func startAll(t *testing.T, all ...*process) {
	t.Helper()
	t.Cleanup(func() {
		for _, p := range all {
			p.kill()
		}
	})
	for _, p := range all {
		require.NoError(t, p.start())
	}
}

// connect makes the client of Temporal, and waits until Temporal serves the namespace.
func (s *stack) connect(ctx context.Context, t *testing.T, address string) {
	t.Helper()
	var err error
	s.api, err = client.NewLazyClient(client.Options{HostPort: address, Namespace: s.namespace, Logger: devserver.Quiet()})
	require.NoError(t, err)
	t.Cleanup(s.api.Close)
	require.NoError(t, until(ctx, 3*time.Minute, func() error { return s.answers(ctx) }), "Temporal starts")
}

// answers returns an error if Temporal does not serve the namespace.
func (s *stack) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	_, err := s.api.WorkflowService().DescribeNamespace(ctx,
		&workflowservice.DescribeNamespaceRequest{Namespace: s.namespace})
	return err
}

// build compiles the product's binary into dir.
func build(ctx context.Context, t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "liqo-autoscaler")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", path,
		"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

// The function `until` calls check until it succeeds; after the limit it returns check's last error.
func until(ctx context.Context, limit time.Duration, check func() error) error {
	return testkit.Poll(ctx, limit, 50*time.Millisecond, func(context.Context) error { return check() })
}
