package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/clock"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/proc"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/temporal"
	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver"
)

// startProduction starts Temporal as it runs in production, and prepares it.
func (s *stack) startProduction(ctx context.Context) {
	s.t.Helper()
	s.production = temporal.New(s.t, s.dir)
	s.temporal, s.env = s.production.Address, s.production.Environment(nil)
	_, err := s.try(ctx, s.env, nil, s.binary, "temporal", "setup", "--wait", "1m")
	require.NoError(s.t, err)
}

// startTemporal starts a dev server that polls for tasks as often as the server of temporal-dev.sh.
func (s *stack) startTemporal(ctx context.Context) {
	s.t.Helper()
	ports, err := proc.FreePorts(1)
	require.NoError(s.t, err)
	s.temporal, s.env = ports[0], []string{"TEMPORAL_ADDRESS=" + ports[0]}
	host, port, err := net.SplitHostPort(s.temporal)
	require.NoError(s.t, err)
	p, err := proc.Start(proc.Spec{Name: "temporal", Path: filepath.Join(s.lab.Bin, "temporal"), LogDir: s.dir,
		Args: []string{
			"server", "start-dev", "--ip", host, "--port", port, "--headless",
			"--db-filename", filepath.Join(s.dir, "temporal.db"), "--sqlite-pragma", "synchronous=OFF", "--log-level", "warn",
			"--search-attribute", "LiqoGroup=Keyword", "--search-attribute", "LiqoInstance=Keyword",
			"--search-attribute", "LiqoProvider=Keyword",
			"--dynamic-config-value", "history.transferProcessorMaxPollRPS=1000"}})
	require.NoError(s.t, err)
	s.stopAtEnd(p)
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	require.NoError(s.t, p.Until(ctx, func(ctx context.Context) error {
		_, err := s.cli(ctx, "workflow", "count")
		return err
	}))
}

// start starts one of our processes; the first of args is its subcommand.
func (s *stack) start(name string, args ...string) *proc.Process {
	s.t.Helper()
	return s.startProgram(s.binary, args[0], name, args...)
}

// startProgram starts one of our programs from the binary at path. The test keeps its log with the other logs of the
// role.
func (s *stack) startProgram(path, role, name string, args ...string) *proc.Process {
	s.t.Helper()
	spec := proc.Spec{Name: name, Path: path, Env: s.env, LogDir: s.dir, Dir: s.dir, Args: args}
	if off, is := s.clocks[name]; is {
		spec.Path, spec.Env = path+clockOff, append(slices.Clone(s.env), clock.Off(off))
	}
	p, err := proc.Start(spec)
	require.NoError(s.t, err)
	s.stopAtEnd(p)
	if !slices.Contains(s.logs[role], p.Log) { // otherwise the process was restarted and its log is known
		s.logs[role] = append(s.logs[role], p.Log)
	}
	return p
}

// startWorker starts a worker. It does not wait until the worker is ready, because Temporal keeps the tasks until
// then.
func (s *stack) startWorker(name string) *proc.Process {
	s.t.Helper()
	args := []string{"worker", "--kubeconfig", filepath.Join(s.accounts, lab.Consumer+".kubeconfig"),
		"--backend", "liqo", "--hub", hub, "--tenant-role", tenantRole, "--metrics-listen", "", "--health-listen", ""}
	if s.offerServer != nil {
		args = append(args, s.offerServer.worker...)
	} else {
		args = append(args, "--offers", filepath.Join(s.dir, "offers.yaml"))
	}
	if s.market {
		args = append(args, "--market-namespace", chartNamespace)
	}
	if s.offerSecrets {
		args = append(args, "--offer-secrets-namespace", chartNamespace)
	}
	return s.start(name, args...)
}

// startServer starts a gRPC server and waits until it is ready, because a Service sends CA only to a ready server.
func (s *stack) startServer(ctx context.Context, name string, number int) *proc.Process {
	s.t.Helper()
	files := s.tlsFiles()
	args := []string{"grpcserver", "--config", filepath.Join(s.dir, "groups.yaml"), "--listen", s.servers[number],
		"--tls-cert", files.Cert, "--tls-key", files.Key, "--tls-client-ca", files.ClientCA, "--tls-allowed-names", caName,
		"--metrics-listen", "", "--health-listen", s.health[number]}
	if s.market {
		args = append(args, "--market-namespace", chartNamespace, "--kubeconfig",
			filepath.Join(s.accounts, serverAccount+".kubeconfig"))
	}
	p := s.start(name, args...)
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	require.NoError(s.t, p.Until(ctx, func(ctx context.Context) error { return ready(ctx, s.health[number]) }))
	return p
}

// ready returns an error unless the process reports that it is ready.
func ready(ctx context.Context, health string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+health+"/readyz", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("/readyz says %s", response.Status)
	}
	return nil
}

func (s *stack) tlsFiles() grpcserver.TLSFiles {
	return grpcserver.TLSFiles{Cert: s.serverTLS.File("tls.crt"), Key: s.serverTLS.File("tls.key"),
		ClientCA: s.serverTLS.File("ca.crt")}
}

// stopAtEnd stops a process when the test ends.
func (s *stack) stopAtEnd(p *proc.Process) {
	s.t.Cleanup(func() { _ = p.Stop(10 * time.Second) })
}

// cli runs the temporal CLI as an operator would.
func (s *stack) cli(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(s.lab.Bin, "temporal"), args...)
	cmd.Env = append(os.Environ(), s.env...)
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
