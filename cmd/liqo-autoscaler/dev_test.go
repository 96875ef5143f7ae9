package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/collector"
)

// TestDevAndDemo runs `make run` and `make demo` as a user does, twice in one directory. The second run finds the
// state of the first run.
func TestDevAndDemo(t *testing.T) {
	testkit.Slow(t)
	if _, err := os.Stat("../../bin/temporal"); err != nil {
		_, err := exec.LookPath("temporal")
		require.NoError(t, err, "this test needs the temporal CLI: run make temporal")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	ports, dir, traces := testkit.FreePorts(t, 5), t.TempDir(), collector.Collect(t)
	_, uiPort, err := net.SplitHostPort(ports[2])
	require.NoError(t, err)
	f := devRun{dir: dir, temporal: ports[0], listen: ports[1], uiPort: uiPort, metrics: ports[3], health: ports[4]}

	for group, provider := range map[string]string{"standard": "milan", "gpu": "genoa"} {
		t.Run(group, func(t *testing.T) {
			banner, stop := startDev(ctx, t, f)
			require.Contains(t, banner, "http://"+ports[3]+"/metrics")
			require.Contains(t, banner, "http://"+ports[4]+"/readyz")
			require.Equal(t, "ok\n", page(ctx, t, ports[4], "/readyz"))
			require.Equal(t, "ok\n", page(ctx, t, ports[4], "/healthz"))
			out, err := f.demo(ctx, group)
			require.NoError(t, err, out)
			require.Regexp(t, `Ready +target 1  `+provider, out)
			require.Contains(t, out, "the simulated world is empty")
			var metrics string
			testkit.Until(t, time.Minute, "the metrics of the second after the demo", func() error {
				metrics = page(ctx, t, ports[3], "/metrics")
				for _, line := range []string{
					`liqo_autoscaler_group_target_size{group="` + group + `",hub="default"} 0`,
					`liqo_autoscaler_step_duration_seconds_count{code="OK",hub="default",step="Join"} 1`,
					`liqo_autoscaler_grpc_request_duration_seconds_count{code="OK",hub="default",method="NodeGroupIncreaseSize"} 1`,
				} {
					if !strings.Contains(metrics, "\n"+line) {
						return fmt.Errorf("without %s", line)
					}
				}
				return nil
			})
			for _, series := range []string{ // by task queue, because the alerts and the dashboard select by it
				`temporal_num_pollers{[^}]*task_queue="liqo-autoscaler"`,
				`temporal_activity_schedule_to_start_latency_seconds_bucket{[^}]*task_queue="liqo-autoscaler-making"`,
				`temporal_workflow_endtoend_latency_seconds_bucket{[^}]*task_queue="liqo-autoscaler-drivers"`,
			} {
				require.Regexp(t, "\n"+series, metrics)
			}
			require.NotRegexp(t, `="[^"]*`+group+`-[0-9a-z]+-[0-9]+`, metrics, "an instance is a label")
			keepAndReturn(ctx, t, f, group)
			if group == "gpu" { // gpu has one provider
				failAndReturn(ctx, t, f, group, provider)
			}
			require.Contains(t, stop(), "stopped; work in progress continues")
		})
	}
	const ca = "clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider/NodeGroup"
	require.Subset(t, traces.Lineages(), []string{
		ca + "IncreaseSize > UpdateWorkflow:grow", ca + "IncreaseSize > StartWorkflow:ScaleOut > RunActivity:Join",
		ca + "DeleteNodes > StartWorkflow:ScaleIn > RunActivity:Return",
	})
	for _, address := range ports {
		_, err := net.DialTimeout("tcp", address, time.Second)
		require.Error(t, err, "something still listens on %s", address)
	}
	log, err := os.ReadFile(filepath.Join(dir, "liqo-autoscaler.log"))
	require.NoError(t, err)
	require.NotContains(t, string(log), "waits for the search attributes", "dev registers them")
}

// devRun holds the addresses and files of one run of dev and of a demo on it.
type devRun struct{ dir, temporal, listen, uiPort, metrics, health string }

// dev runs the command `dev` until the context ends.
func (f devRun) dev(ctx context.Context, out io.Writer) error {
	root := newRoot()
	root.SetArgs([]string{"dev", "--dir", f.dir, "--listen", f.listen, "--temporal-address", f.temporal,
		"--temporal-ui-port", f.uiPort, "--temporal-script", "../../temporal-dev.sh", "--metrics-listen", f.metrics,
		"--health-listen", f.health})
	root.SetOut(out)
	return root.ExecuteContext(ctx)
}

// demo runs the command `demo`, and returns its output.
func (f devRun) demo(ctx context.Context, group string, more ...string) (string, error) {
	out, _, err := command(ctx, append([]string{"demo", "--address", f.listen, "--temporal-address", f.temporal,
		"--group", group, "--world", filepath.Join(f.dir, "world.json"), "--timeout", "3m"}, more...)...)
	return out, err
}

// keepAndReturn runs the demo in two parts: --keep creates a node, and --return removes it. In between it checks the
// node.
func keepAndReturn(ctx context.Context, t *testing.T, f devRun, group string) {
	t.Helper()
	half := func(which string) string {
		out, err := f.demo(ctx, group, which)
		require.NoError(t, err, out)
		return out
	}
	require.NotContains(t, half("--keep"), "NodeGroupDeleteNodes")
	status, _, err := command(ctx, "status", "--temporal-address", f.temporal)
	require.NoError(t, err)
	require.Regexp(t, group+`-\w+-2 +`+group+` +Ready `, status)
	testkit.Until(t, time.Minute, "the metrics of the node that is kept", func() error {
		line := `liqo_autoscaler_group_target_size{group="` + group + `",hub="default"} 1`
		if !strings.Contains(page(ctx, t, f.metrics, "/metrics"), "\n"+line+"\n") {
			return fmt.Errorf("without %s", line)
		}
		return nil
	})
	returned := half("--return")
	require.NotContains(t, returned, "NodeGroupIncreaseSize")
	require.Contains(t, returned, "the simulated world is empty")
}

// failAndReturn runs a demo whose instance fails. The failed instance stays until the second part of the demo deletes
// it.
func failAndReturn(ctx context.Context, t *testing.T, f devRun, group, provider string) {
	t.Helper()
	_, _, err := command(ctx, "dev", "refuse", provider, "--dir", f.dir)
	require.NoError(t, err)
	out, err := f.demo(ctx, group)
	require.ErrorContains(t, err, "demo --return --group "+group, out)
	out, err = f.demo(ctx, group, "--return")
	require.NoError(t, err, out)
	require.Contains(t, out, "the simulated world is empty")
	_, _, err = command(ctx, "dev", "heal", provider, "--dir", f.dir)
	require.NoError(t, err)
}

// startDev starts `dev` and waits until all its parts run. It returns the text that dev prints at its start, and a
// function that stops dev and returns its whole output.
func startDev(ctx context.Context, t *testing.T, f devRun) (banner string, stop func() string) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	var out testkit.Buffer
	done := make(chan error, 1)
	go func() { done <- f.dev(ctx, &out) }()
	stopped := false
	stop = func() string {
		if cancel(); !stopped {
			stopped = true
			require.NoError(t, <-done)
		}
		return out.String()
	}
	t.Cleanup(func() { stop() })
	require.NoError(t, cli.WaitFor(ctx, 2*time.Minute, func() error {
		select {
		case err := <-done:
			done <- err
			require.NoError(t, err)
			require.Fail(t, "dev ended without a signal", "%s", &out)
		default:
		}
		if !strings.Contains(out.String(), "Ctrl-C stops everything.") {
			return io.ErrNoProgress
		}
		return nil
	}))
	return out.String(), stop
}

// page returns the page at an address.
func page(ctx context.Context, t *testing.T, address, path string) string {
	t.Helper()
	body, err := read(ctx, address, path)
	require.NoError(t, err)
	return body
}

func read(ctx context.Context, address, path string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}
