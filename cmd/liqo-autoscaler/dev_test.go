package main

import (
	"bytes"
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

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/connect"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// `make run` and `make demo` as a user has them, twice in one directory: the second start finds what the first one left.
func TestDevAndDemo(t *testing.T) {
	testkit.Slow(t)
	if _, err := os.Stat("../../bin/temporal"); err != nil {
		_, err := exec.LookPath("temporal")
		require.NoError(t, err, "this test needs the temporal CLI: run make temporal")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	ports, dir, traces := testkit.FreePorts(t, 5), t.TempDir(), collect(t)
	_, uiPort, err := net.SplitHostPort(ports[2])
	require.NoError(t, err)
	c := &common{logLevel: "info", temporal: connect.Flags{Address: ports[0]}}
	f := devFlags{dir: dir, listen: ports[1], temporalScript: "../../temporal-dev.sh", uiPort: uiPort,
		observe: observeFlags{metrics: ports[3], health: ports[4]}}

	for group, provider := range map[string]string{"standard": "milan", "gpu": "genoa"} {
		t.Run(group, func(t *testing.T) {
			banner, stop := startDev(ctx, t, c, f)
			require.Contains(t, banner, "http://"+ports[3]+"/metrics")
			require.Contains(t, banner, "http://"+ports[4]+"/readyz")
			require.Equal(t, "ok\n", page(ctx, t, ports[4], "/readyz"))
			require.Equal(t, "ok\n", page(ctx, t, ports[4], "/healthz"))
			grew := seenOn(ctx, t, ports[3], `liqo_autoscaler_group_target_size{group="`+group+`"} 1`)
			var out testkit.Buffer
			d := demoFlags{address: f.listen, group: group, world: filepath.Join(dir, "world.json"), timeout: 3 * time.Minute}
			require.NoError(t, demo(ctx, c, d, &out), "%s", &out)
			require.Regexp(t, `Ready +target 1  `+provider, out.String())
			require.Contains(t, out.String(), "the simulated world is empty")
			require.NoError(t, <-grew)
			metrics := page(ctx, t, ports[3], "/metrics")
			for _, line := range []string{
				`liqo_autoscaler_group_target_size{group="` + group + `"} 0`,
				`liqo_autoscaler_step_duration_seconds_count{code="OK",step="Join"} 1`,
				`liqo_autoscaler_grpc_request_duration_seconds_count{code="OK",method="NodeGroupIncreaseSize"} 1`,
			} {
				require.Contains(t, metrics, "\n"+line)
			}
			for _, series := range []string{ // by task queue, as the alerts and the dashboard select them
				`temporal_num_pollers{[^}]*task_queue="liqo-autoscaler"`,
				`temporal_activity_schedule_to_start_latency_seconds_bucket{[^}]*task_queue="liqo-autoscaler-making"`,
				`temporal_workflow_endtoend_latency_seconds_bucket{[^}]*task_queue="liqo-autoscaler-drivers"`,
			} {
				require.Regexp(t, "\n"+series, metrics)
			}
			require.NotRegexp(t, `="[^"]*`+group+`-[0-9a-z]+-[0-9]+`, metrics, "an instance is a label")
			keepAndReturn(ctx, t, c, d)
			if group == "gpu" { // which has one provider
				failAndReturn(ctx, t, c, d, provider)
			}
			require.Contains(t, stop(), "stopped; work in progress continues")
		})
	}
	const ca = "clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider/NodeGroup"
	require.Subset(t, traces.lineages(), []string{
		ca + "IncreaseSize > UpdateWorkflow:grow", ca + "IncreaseSize > StartWorkflow:ScaleOut > RunActivity:Join",
		ca + "DeleteNodes > StartWorkflow:ScaleIn > RunActivity:Return",
	})
	for _, address := range ports {
		_, err := net.DialTimeout("tcp", address, time.Second)
		require.Error(t, err, "something still listens on %s", address)
	}
	log, err := os.ReadFile(filepath.Join(dir, "liqo-autoscaler.log"))
	require.NoError(t, err)
	require.Equal(t, 2, bytes.Count(log, []byte("workflows are listed with search attributes")), "once a start")
}

// keepAndReturn is the demo in two halves, with a look at the node in between.
func keepAndReturn(ctx context.Context, t *testing.T, c *common, d demoFlags) {
	t.Helper()
	half := func(keep, giveBack bool) string {
		var out testkit.Buffer
		d.keep, d.giveBack = keep, giveBack
		require.NoError(t, demo(ctx, c, d, &out), "%s", &out)
		return out.String()
	}
	require.NotContains(t, half(true, false), "NodeGroupDeleteNodes")
	var status testkit.Buffer
	command := newRoot()
	command.SetOut(&status)
	command.SetArgs([]string{"status", "--temporal-address", c.temporal.Address})
	require.NoError(t, command.ExecuteContext(ctx))
	require.Regexp(t, d.group+`-\w+-2 +`+d.group+` +Ready `, status.String())
	returned := half(false, true)
	require.NotContains(t, returned, "NodeGroupIncreaseSize")
	require.Contains(t, returned, "the simulated world is empty")
}

// failAndReturn is a demo whose instance fails, which stays until somebody deletes it.
func failAndReturn(ctx context.Context, t *testing.T, c *common, d demoFlags, provider string) {
	t.Helper()
	_, _, err := command(ctx, "dev", "refuse", provider, "--dir", filepath.Dir(d.world))
	require.NoError(t, err)
	var out testkit.Buffer
	require.ErrorContains(t, demo(ctx, c, d, &out), "demo --return --group "+d.group, "%s", &out)
	d.giveBack = true
	require.NoError(t, demo(ctx, c, d, &out), "%s", &out)
	require.Contains(t, out.String(), "the simulated world is empty")
	_, _, err = command(ctx, "dev", "heal", provider, "--dir", filepath.Dir(d.world))
	require.NoError(t, err)
}

// startDev returns the banner once all is up, and what stops it again and returns its whole output.
func startDev(ctx context.Context, t *testing.T, c *common, f devFlags) (banner string, stop func() string) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	var out testkit.Buffer
	done := make(chan error, 1)
	go func() { done <- dev(ctx, c, f, &out) }()
	stopped := false
	stop = func() string {
		if cancel(); !stopped {
			stopped = true
			require.NoError(t, <-done)
		}
		return out.String()
	}
	t.Cleanup(func() { stop() })
	require.NoError(t, waitFor(ctx, 2*time.Minute, func() error {
		select {
		case err := <-done:
			done <- err
			require.NoError(t, err)
			require.Fail(t, "dev ended by itself", "%s", &out)
		default:
		}
		if !strings.Contains(out.String(), "Ctrl-C stops everything.") {
			return io.ErrNoProgress
		}
		return nil
	}))
	return out.String(), stop
}

// page is what an address shows.
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

// seenOn scrapes until the line shows.
func seenOn(ctx context.Context, t *testing.T, address, line string) <-chan error {
	t.Helper()
	seen := make(chan error, 1)
	go func() {
		seen <- waitFor(ctx, time.Minute, func() error {
			metrics, err := read(ctx, address, "/metrics")
			if err == nil && !strings.Contains(metrics, "\n"+line+"\n") {
				err = fmt.Errorf("no line %s", line)
			}
			return err
		})
	}()
	return seen
}

// A config or offers file that is missing or broken ends dev before anything starts, with the file and what is wrong.
func TestDevFilesAtFault(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	missing, broken := filepath.Join(dir, "no", "such.yaml"), write("broken.yaml", "offers: [{name: milan, size: 3}]")
	for says, f := range map[string]devFlags{
		missing:                      {config: missing},
		"open " + missing:            {offers: missing},
		broken:                       {config: broken},
		"offers[0].size":             {offers: broken},
		"offers[0].lendable":         {offers: broken},
		"open offers file " + broken: {offers: broken},
	} {
		f.dir, f.listen, f.temporalScript = t.TempDir(), "127.0.0.1:0", missing
		c := &common{logLevel: "info", temporal: connect.Flags{Address: "127.0.0.1:1"}}
		err := dev(t.Context(), c, f, io.Discard)
		require.ErrorContains(t, err, says)
	}
}

// Groups and offers of one's own are simulated, also an offer that comes while it runs.
func TestDevOwnFiles(t *testing.T) {
	dir := t.TempDir()
	offers := filepath.Join(dir, "mine.yaml")
	write := func(names ...string) {
		content := "offers:\n"
		for _, name := range names {
			content += fmt.Sprintf("- {name: %s, credentials: {kubeconfigFile: none.yaml}, "+
				"lendable: {cpu: 4, memory: 8Gi, pods: 110}}\n", name)
		}
		require.NoError(t, os.WriteFile(offers, []byte(content), 0o600))
	}
	write("rome")
	p, err := openDev(t.Context(), devFlags{dir: dir, offers: offers})
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "nodegroups.yaml"), p.configPath)
	for _, names := range [][]string{{"rome"}, {"bari", "rome"}} {
		write(names...)
		found, problems, err := p.offers.Offers(t.Context())
		require.NoError(t, err)
		require.Empty(t, problems)
		var providers []string
		for _, o := range found {
			providers = append(providers, o.Provider)
			require.NoError(t, p.backend.Establish(t.Context(), fleet.Provider{ID: o.Provider, Credentials: o.Credentials}, nil))
		}
		require.Equal(t, names, providers)
	}
}

// Temporal that cannot start ends `make run` at once, with the reason.
func TestDevSaysWhyTemporalDoesNotStart(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "temporal.sh")
	fails := []byte("echo 'listen tcp 127.0.0.1:8233: bind: address already in use'; exit 1\n")
	require.NoError(t, os.WriteFile(script, fails, 0o600))
	address := testkit.FreePorts(t, 1)[0]
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := dev(ctx, &common{logLevel: "info", temporal: connect.Flags{Address: address}},
		devFlags{dir: dir, listen: "127.0.0.1:0", temporalScript: script, uiPort: "8233"}, io.Discard)
	require.NoError(t, ctx.Err(), "dev waited for a Temporal that had ended")
	require.ErrorContains(t, err, "8233: bind: address already in use")
}

// What dev proposes to run next finds what dev runs.
func TestDevNamesCommandsThatWork(t *testing.T) {
	t.Chdir("../..")
	usual := devFlags{dir: defaultDir, listen: defaultListen}
	demo, watch := usual.tries(connect.DefaultAddress, "default")
	require.Equal(t, []string{"make demo", "make watch"}, []string{demo, watch})
	elsewhere := devFlags{dir: "x", listen: "127.0.0.1:1"}
	demo, watch = elsewhere.tries("127.0.0.1:2", "edge")
	require.Equal(t, os.Args[0]+" demo --address 127.0.0.1:1 --temporal-address 127.0.0.1:2 --hub edge", demo)
	require.Equal(t, os.Args[0]+" status --watch --market-file x/market.json --temporal-address 127.0.0.1:2 --hub edge",
		watch)
	t.Chdir(t.TempDir())
	demo, _ = usual.tries(connect.DefaultAddress, "")
	require.Equal(t, os.Args[0]+" demo", demo)
}

// Whoever has no Temporal CLI yet reads what takes minutes before it begins, also by make temporal, which hides stdout.
func TestBuildingTheCLISaysSo(t *testing.T) {
	script, err := os.ReadFile("../../temporal-dev.sh")
	require.NoError(t, err)
	folder := t.TempDir()
	tools := filepath.Join(folder, "tools")
	require.NoError(t, os.Mkdir(tools, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(folder, temporalScript), script, 0o600))
	for _, tool := range []string{"bash", "dirname"} {
		path, err := exec.LookPath(tool)
		require.NoError(t, err)
		require.NoError(t, os.Symlink(path, filepath.Join(tools, tool)))
	}
	fails := []byte("#!" + filepath.Join(tools, "bash") + "\necho compiling >&2\nexit 1\n")
	require.NoError(t, os.WriteFile(filepath.Join(tools, "go"), fails, 0o700)) //nolint:gosec // a program
	t.Chdir(folder)
	t.Setenv("PATH", tools)
	var out testkit.Buffer
	_, err = installTemporal(t.Context(), &out)
	require.ErrorContains(t, err, "install the Temporal CLI by "+temporalScript)
	require.Regexp(t, `^building the Temporal CLI with its dev server and UI, ./bin/temporal v\S+: under 4 minutes, once\ncompiling\n$`,
		out.String())
}

// The script is found from the repository, and from elsewhere by where the program is.
func TestDevFindsItsScript(t *testing.T) {
	dir := t.TempDir()
	here, repository := filepath.Join(dir, "here"), filepath.Join(dir, "repository")
	for _, folder := range []string{here, repository} {
		require.NoError(t, os.Mkdir(folder, 0o700))
	}
	_, err := findScript(here, repository)
	require.ErrorContains(t, err, "temporal-dev.sh, which starts one, is not in "+here+" or "+repository)
	for _, folder := range []string{repository, here} {
		want := filepath.Join(folder, temporalScript)
		require.NoError(t, os.WriteFile(want, nil, 0o600))
		found, err := findScript(here, repository)
		require.NoError(t, err)
		require.Equal(t, want, found)
	}
}
