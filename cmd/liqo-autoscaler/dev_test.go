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
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/worker/workertest"
)

// `make run` and `make demo` as a user has them, twice in one directory: the second start finds what the first one left.
func TestDevAndDemo(t *testing.T) {
	if _, err := os.Stat("../../bin/temporal"); err != nil {
		_, err := exec.LookPath("temporal")
		require.NoError(t, err, "this test needs the temporal CLI: run make temporal")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	ports, dir := workertest.FreePorts(t, 6), t.TempDir()
	_, uiPort, err := net.SplitHostPort(ports[3])
	require.NoError(t, err)
	c := &common{logLevel: "info", namespace: "default", temporalAddress: ports[0]}
	f := devFlags{dir: dir, listen: ports[1], discoveryListen: ports[2], temporalScript: "../../temporal-dev.sh", uiPort: uiPort,
		observe: observeFlags{metrics: ports[4], health: ports[5]}}

	for group, provider := range map[string]string{"standard": "milan", "gpu": "genoa"} {
		t.Run(group, func(t *testing.T) {
			banner, stop := startDev(ctx, t, c, f)
			runCurl(ctx, t, banner)
			require.Contains(t, banner, "http://"+ports[4]+"/metrics")
			require.Contains(t, banner, "http://"+ports[5]+"/readyz")
			require.Equal(t, "ok\n", page(ctx, t, ports[5], "/readyz"))
			require.Equal(t, "ok\n", page(ctx, t, ports[5], "/healthz"))
			grew := seenOn(ctx, t, ports[4], `liqo_autoscaler_group_target_size{group="`+group+`"} 1`)
			var out workertest.Buffer
			d := demoFlags{address: f.listen, group: group, world: filepath.Join(dir, "world.json"), timeout: time.Minute}
			require.NoError(t, demo(ctx, c, d, &out), "%s", &out)
			require.Regexp(t, `Ready +target 1  `+provider, out.String())
			require.Contains(t, out.String(), "the simulated world is empty")
			require.NoError(t, <-grew)
			metrics := page(ctx, t, ports[4], "/metrics")
			for _, line := range []string{
				`liqo_autoscaler_group_target_size{group="` + group + `"} 0`,
				`liqo_autoscaler_step_duration_seconds_count{code="OK",step="WaitForVirtualNode"} 1`,
				`liqo_autoscaler_grpc_request_duration_seconds_count{code="OK",method="NodeGroupIncreaseSize"} 1`,
				`temporal_num_pollers{`,
			} {
				require.Contains(t, metrics, "\n"+line)
			}
			require.NotRegexp(t, `="[^"]*`+group+`-[0-9a-z]+-[0-9]+`, metrics, "an instance is a label")
			keepAndReturn(ctx, t, c, d)
			require.Contains(t, stop(), "stopped; what was under way goes on")
		})
	}
	for _, address := range ports {
		_, err := net.DialTimeout("tcp", address, time.Second)
		require.Error(t, err, "something still listens on %s", address)
	}
	noSecretIn(t, dir)
	log, err := os.ReadFile(filepath.Join(dir, "liqo-autoscaler.log"))
	require.NoError(t, err)
	require.Equal(t, 2, bytes.Count(log, []byte("workflows are listed with search attributes")), "once a start")
}

// keepAndReturn is the demo in two halves, with a look at the node in between.
func keepAndReturn(ctx context.Context, t *testing.T, c *common, d demoFlags) {
	t.Helper()
	half := func(keep, giveBack bool) string {
		var out workertest.Buffer
		d.keep, d.giveBack = keep, giveBack
		require.NoError(t, demo(ctx, c, d, &out), "%s", &out)
		return out.String()
	}
	require.NotContains(t, half(true, false), "NodeGroupDeleteNodes")
	var status workertest.Buffer
	command := newRoot()
	command.SetOut(&status)
	command.SetArgs([]string{"status", "--temporal-address", c.temporalAddress})
	require.NoError(t, command.ExecuteContext(ctx))
	require.Regexp(t, d.group+`-\w+-2 +`+d.group+` +Ready `, status.String())
	returned := half(false, true)
	require.NotContains(t, returned, "NodeGroupIncreaseSize")
	require.Contains(t, returned, "the simulated world is empty")
}

// startDev returns the banner once all is up, and what stops it again and returns its whole output.
func startDev(ctx context.Context, t *testing.T, c *common, f devFlags) (banner string, stop func() string) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	var out workertest.Buffer
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
		if !strings.Contains(out.String(), "Who lends:") {
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

// runCurl runs the command that the banner shows.
func runCurl(ctx context.Context, t *testing.T, banner string) {
	t.Helper()
	line := regexp.MustCompile(`(?m)^  (curl .*)$`).FindStringSubmatch(banner)
	require.NotNil(t, line, "%s", banner)
	if _, err := exec.LookPath("curl"); err != nil {
		t.Log("no curl here")
		return
	}
	out, err := exec.CommandContext(ctx, "bash", "-c", line[1]+" --silent --show-error --fail --noproxy '*'").CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, name := range []string{"milan", "turin", "genoa"} {
		require.Contains(t, string(out), `"name":"`+name+`"`)
	}
}

// noSecretIn checks that the token is in its file and nowhere else, and that no other user may read it.
func noSecretIn(t *testing.T, dir string) {
	t.Helper()
	tokenFile := filepath.Join(dir, "discovery", "token")
	token, err := os.ReadFile(tokenFile)
	require.NoError(t, err)
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if path != tokenFile {
			require.False(t, bytes.Contains(content, bytes.TrimSpace(token)), "the token is in %s", path)
		}
		if filepath.Dir(path) == filepath.Dir(tokenFile) {
			info, err := entry.Info()
			require.NoError(t, err)
			require.Zero(t, info.Mode().Perm()&0o077, "others may read %s", path)
		}
		return err
	}))
}

// Temporal that cannot start ends `make run` at once, with the reason.
func TestDevSaysWhyTemporalDoesNotStart(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "temporal.sh")
	require.NoError(t, os.WriteFile(script, []byte("echo 'listen tcp 127.0.0.1:8233: bind: address already in use'; exit 1\n"), 0o600))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	err = dev(ctx, &common{logLevel: "info", namespace: "default", temporalAddress: address},
		devFlags{dir: dir, listen: "127.0.0.1:0", discoveryListen: "127.0.0.1:0", temporalScript: script, uiPort: "8233"}, io.Discard)
	require.NoError(t, ctx.Err(), "dev waited for a Temporal that had ended")
	require.ErrorContains(t, err, "8233: bind: address already in use")
}
