package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/ca"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/proc"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"
)

// stack is everything between Cluster Autoscaler and the clusters, each in a process of its own.
type stack struct {
	t         *testing.T
	dir       string // logs, configs, the recorded calls
	lab       *lab.Lab
	consumer  *cluster
	providers []*cluster
	proxy     *ca.Proxy
	client    protos.CloudProviderClient // to grpcserver, past the proxy

	binary   string // ours
	temporal string // host:port
	server   string // host:port of grpcserver
	worker   *proc.Process
}

// newStack builds and starts all of it. The test's end stops it again.
func newStack(ctx context.Context, t *testing.T, suite, groups, offers string) *stack {
	t.Helper()
	s := &stack{t: t, dir: filepath.Join(os.TempDir(), "liqo-autoscaler-e2e", suite)}
	require.NoError(t, os.RemoveAll(s.dir))
	require.NoError(t, os.MkdirAll(s.dir, 0o755))
	timing := newSteps(t)

	bin := filepath.Join(os.TempDir(), "liqo-autoscaler-e2e", "bin") // kept: what is up to date is not linked again
	require.NoError(t, os.MkdirAll(bin, 0o755))
	s.binary = buildProduct(ctx, t, bin)
	loop, err := ca.Build(ctx, bin)
	require.NoError(t, err)
	timing.done("build")

	s.lab = lab.ForTest(ctx, t, lab.Options{Providers: 2})
	timing.done("lab up")
	s.consumer = newCluster(t, s.lab, lab.Consumer)
	for _, name := range s.lab.Providers {
		s.providers = append(s.providers, newCluster(t, s.lab, name))
	}

	ports, err := proc.FreePorts(2)
	require.NoError(t, err)
	s.temporal, s.server = ports[0], ports[1]
	s.startTemporal(ctx)
	timing.done("temporal up")
	maxNodes := "0"
	if s.lab.OneSlice() {
		maxNodes = "1"
	}
	for name, text := range map[string]string{"groups.yaml": groups, "offers.yaml": offers} {
		text = strings.NewReplacer("$ROOT", s.lab.Root, "$MAX_NODES", maxNodes).Replace(text)
		require.NoError(t, os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600))
	}
	s.startWorker()
	s.startServer(ctx)
	timing.done("product up")

	conn, err := grpc.NewClient(s.server, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	s.client = protos.NewCloudProviderClient(conn)
	s.proxy, err = ca.NewProxy(s.server, filepath.Join(s.dir, "calls.jsonl"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.proxy.Close()) })
	p, err := ca.Start(ctx, ca.Options{Binary: loop, Kubeconfig: s.lab.Kubeconfig(lab.Consumer), Provider: s.proxy.Address, Dir: s.dir})
	require.NoError(t, err)
	s.stopAtEnd(p)
	timing.done("cluster autoscaler up")
	t.Cleanup(s.keepEvidence) // runs first, while everything still does
	return s
}

// buildProduct compiles our binary from the sources beside this module.
func buildProduct(ctx context.Context, t *testing.T, dir string) string {
	t.Helper()
	_, file, _, ok := runtime.Caller(0)
	require.True(t, ok)
	out := filepath.Join(dir, "liqo-autoscaler")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", out, "./cmd/liqo-autoscaler")
	cmd.Dir = filepath.Join(filepath.Dir(file), "..")
	said, err := cmd.CombinedOutput()
	require.NoError(t, err, "build liqo-autoscaler: %s", said)
	return out
}

func (s *stack) startTemporal(ctx context.Context) {
	s.t.Helper()
	host, port, err := net.SplitHostPort(s.temporal)
	require.NoError(s.t, err)
	p, err := proc.Start(proc.Spec{Name: "temporal", Path: filepath.Join(s.lab.Bin, "temporal"), LogDir: s.dir, Args: []string{
		"server", "start-dev", "--ip", host, "--port", port, "--headless",
		"--db-filename", filepath.Join(s.dir, "temporal.db"), "--log-level", "warn"}})
	require.NoError(s.t, err)
	s.stopAtEnd(p)
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	require.NoError(s.t, p.Until(ctx, func(ctx context.Context) error {
		_, err := s.cli(ctx, "workflow", "count")
		return err
	}))
}

// startWorker starts our worker. It needs no waiting: tasks wait in Temporal.
func (s *stack) startWorker() {
	s.t.Helper()
	p, err := proc.Start(proc.Spec{Name: "worker", Path: s.binary, LogDir: s.dir, Dir: s.dir, Args: []string{
		"worker", "--temporal-address", s.temporal, "--kubeconfig", s.lab.Kubeconfig(lab.Consumer),
		"--offers", filepath.Join(s.dir, "offers.yaml"), "--backend", "liqo", "--metrics-listen", "", "--health-listen", ""}})
	require.NoError(s.t, err)
	s.stopAtEnd(p)
	s.worker = p
}

func (s *stack) startServer(ctx context.Context) {
	s.t.Helper()
	p, err := proc.Start(proc.Spec{Name: "grpcserver", Path: s.binary, LogDir: s.dir, Dir: s.dir, Args: []string{
		"grpcserver", "--temporal-address", s.temporal, "--config", filepath.Join(s.dir, "groups.yaml"), "--listen", s.server,
		"--insecure-plaintext", "--metrics-listen", "", "--health-listen", ""}})
	require.NoError(s.t, err)
	s.stopAtEnd(p)
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	require.NoError(s.t, p.Until(ctx, func(ctx context.Context) error {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.server)
		if err == nil {
			err = c.Close()
		}
		return err
	}))
}

// stopAtEnd stops a process when the test ends, whatever ended it.
func (s *stack) stopAtEnd(p *proc.Process) {
	s.t.Cleanup(func() { _ = p.Stop(10 * time.Second) })
}

// cli runs the temporal CLI as an operator would.
func (s *stack) cli(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(s.lab.Bin, "temporal"), append(args, "--address", s.temporal)...)
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
		}
		return "", fmt.Errorf("temporal %s: %w", strings.Join(args, " "), err)
	}
	return string(out), nil
}

// keepEvidence shows what our processes and Temporal say when the test failed, and saves the lab's logs from its end.
func (s *stack) keepEvidence() {
	if !s.t.Failed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := os.CopyFS(filepath.Join(s.dir, "lab"), os.DirFS(filepath.Join(s.lab.Root, "log"))); err != nil {
		s.t.Log(err)
	}
	workflows, err := s.cli(ctx, "workflow", "list", "--limit", "40")
	s.t.Logf("workflows (%v):\n%s", err, workflows)
	s.t.Logf("evidence is in %s; logs end:\n%s", s.dir, proc.Tails(s.dir, 15))
}
