package dev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// A second dev in the same directory is refused, because both would write to one database.
func TestSecondDevInADirectoryIsRefused(t *testing.T) {
	dir := t.TempDir()
	unlock, err := lockDir(dir)
	require.NoError(t, err)
	_, err = lockDir(dir)
	require.ErrorContains(t, err, fmt.Sprintf("another liqo-autoscaler dev runs in %s (process %d)", dir, os.Getpid()))
	c := &connect.Common{Log: cli.Log{Level: "info"}, Temporal: connect.Flags{Address: "127.0.0.1:1"}}
	err = run(t.Context(), c, devFlags{dir: dir, listen: "127.0.0.1:0"}, io.Discard)
	require.ErrorContains(t, err, "another liqo-autoscaler dev runs")
	unlock()
	unlock, err = lockDir(dir)
	require.NoError(t, err)
	unlock()
}

// writeCLI writes a fake Temporal CLI that only prints its arguments.
func writeCLI(t *testing.T, folder string) string {
	t.Helper()
	path := filepath.Join(folder, "temporal")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\necho \"$@\"\n"), 0o700)) //nolint:gosec // a program
	return path
}

// dev starts Temporal with the same arguments as the script.
func TestServerArgumentsEqualTheScripts(t *testing.T) {
	folder := t.TempDir()
	script, err := os.ReadFile("../../../temporal-dev.sh")
	require.NoError(t, err)
	path := filepath.Join(folder, temporalScript)
	require.NoError(t, os.WriteFile(path, script, 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(folder, "bin"), 0o700))
	writeCLI(t, filepath.Join(folder, "bin"))
	cmd := exec.CommandContext(t.Context(), "bash", path)
	cmd.Env = append(os.Environ(), "TEMPORAL_IP=127.0.0.2", "TEMPORAL_PORT=1", "TEMPORAL_UI_PORT=2",
		"TEMPORAL_DB="+filepath.Join(folder, "db"), "TEMPORAL_LOG_LEVEL=error")
	said, err := cmd.Output()
	require.NoError(t, err)
	require.Equal(t, strings.TrimSpace(string(said)),
		strings.Join(serverArgs("127.0.0.2", "1", "2", filepath.Join(folder, "db")), " "))
}

// A released binary has no script. It uses a Temporal CLI next to it, or on PATH.
func TestDevWorksWithoutACheckout(t *testing.T) {
	t.Chdir(t.TempDir())
	tools := t.TempDir()
	t.Setenv("PATH", tools)
	f := devFlags{dir: "state", uiPort: "2"}
	_, err := f.server(t.Context(), "127.0.0.1", "1", io.Discard)
	require.ErrorIs(t, err, errNoServer)
	require.ErrorContains(t, err, "install the Temporal CLI")
	onPath := writeCLI(t, tools)
	cmd, err := f.server(t.Context(), "127.0.0.1", "1", io.Discard)
	require.NoError(t, err)
	require.Equal(t, onPath, cmd.Path)
	require.Contains(t, cmd.Args, filepath.Join("state", "temporal.db"))
	beside := t.TempDir()
	require.Equal(t, writeCLI(t, beside), findCLI(filepath.Join(beside, "liqo-autoscaler")))
}

// A server accepts connections at Temporal's address, but does not answer. dev reports this on the terminal and ends
// within its time limit.
func TestSilentTemporalEndsDev(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	before := listenerWait
	listenerWait = 3 * time.Second
	t.Cleanup(func() { listenerWait = before })
	var out testkit.Buffer
	c := &connect.Common{Log: cli.Log{Level: "info"}, Temporal: connect.Flags{Address: l.Addr().String()}}
	err = run(t.Context(), c, devFlags{dir: t.TempDir(), listen: "127.0.0.1:0", uiPort: "1"}, &out)
	require.ErrorContains(t, err, "does not answer as Temporal: stop it, or use another --temporal-address")
	require.Contains(t, out.String(), "a program listens at "+l.Addr().String())
}

func TestOutageOfTemporalIsReported(t *testing.T) {
	away := errors.New("no Temporal")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	results := []error{nil, away, nil, away, away, away, nil}
	var out testkit.Buffer
	reportTemporal(ctx, time.Millisecond, func(context.Context) error {
		if len(results) == 0 {
			stop()
			return nil
		}
		err := results[0]
		results = results[1:]
		return err
	}, "temporal.log", &out)
	require.Equal(t, "\nTemporal does not answer, see temporal.log: no Temporal\n"+
		"Temporal answers again; work in progress continues\n", out.String())
}

// refreshed counts the calls of Refresh.
type refreshed struct {
	calls int
	stop  func()
}

func (r *refreshed) Refresh(context.Context, *protos.RefreshRequest) (*protos.RefreshResponse, error) {
	if r.calls++; r.calls == 3 {
		r.stop()
	}
	return nil, errors.New("no state yet")
}

func TestDevRefreshesAsClusterAutoscalerDoes(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	r := &refreshed{stop: stop}
	refresh(ctx, r, time.Millisecond, slog.New(slog.DiscardHandler))
	require.Equal(t, 3, r.calls)
}
