package sim

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/backendtest"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// These are environment variables of a child process, which runs this test binary again.
const (
	envWorld       = "SIM_TEST_WORLD"
	envCredentials = "SIM_TEST_CREDENTIALS"
	envKillAt      = "SIM_TEST_KILL_AT"
)

func child(t *testing.T, test string, env ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+test+"$", "-test.v")
	cmd.Env = append(os.Environ(), env...)
	return cmd
}

// Two processes run the whole contract concurrently on one world, each with its own providers.
func TestContractTwoProcesses(t *testing.T) {
	testkit.Slow(t)
	delays := Delays{Peer: 20 * time.Millisecond, Join: 20 * time.Millisecond, Leave: 10 * time.Millisecond}
	w := open(t, filepath.Join(t.TempDir(), "world.json"), delays)
	cmd := child(t, "TestChildContract", envWorld+"="+w.Path())
	type result struct {
		out []byte
		err error
	}
	done := make(chan result, 1)
	go func() {
		out, err := cmd.CombinedOutput()
		done <- result{out, err}
	}()
	backendtest.Run(t, harness(t, w, "parent", "one", "two"))
	r := <-done
	require.NoError(t, r.err, "%s", r.out)
	require.Contains(t, string(r.out), "--- PASS: TestChildContract/AtRest")
	require.Zero(t, counts(t, w))
}

func TestChildContract(t *testing.T) {
	path := os.Getenv(envWorld)
	if path == "" {
		t.Skip("a child of TestContractTwoProcesses")
	}
	w, err := Open(path)
	require.NoError(t, err)
	backendtest.Run(t, harness(t, w, "child", "three", "four"))
}

// A process makes and removes a node, and the test kills it in the middle of a write. The test repeats this for each
// write, including the rewrites of the whole file. After each kill another process continues, and at the end no
// object is left.
func TestKilledAtEachWrite(t *testing.T) {
	testkit.Slow(t)
	const enough = 100
	for at := 1; ; at++ {
		require.Less(t, at, enough, "the life of a node has fewer writes")
		w := open(t, filepath.Join(t.TempDir(), "world.json"), Delays{})
		p := provider(t, w, "one")
		out, err := child(t, "TestChildLife",
			envWorld+"="+w.Path(), envCredentials+"="+p.Credentials.KubeconfigFile, envKillAt+"="+strconv.Itoa(at),
		).CombinedOutput()
		torn := isTorn(t, w.Path())
		found, listErr := New(w, testOptions).List(t.Context(), backend.Scope{})
		require.NoError(t, listErr)
		for _, f := range found {
			if f.Terminating { // as the workflows do: they return a terminating node
				require.NoError(t, New(w, testOptions).Return(bounded(t), f.Attempt, nil))
			}
		}
		life(t, w, p)
		require.Zero(t, counts(t, w), "killed at write %d", at)
		if err == nil {
			require.Greater(t, at, 15, "the child wrote hardly anything: %s", out)
			t.Logf("a life has %d writes", at-1)
			return
		}
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit)
		status, ok := exit.Sys().(syscall.WaitStatus)
		require.True(t, ok && status.Signaled() && status.Signal() == syscall.SIGKILL, "%v: %s", err, out)
		require.True(t, torn, "it died half way through a write")
	}
}

// isTorn reports whether a writer was killed in the middle of a line, or while it rewrote the whole file.
func isTorn(t *testing.T, path string) bool {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	half, err := os.ReadFile(path + ".tmp")
	return !bytes.HasSuffix(content, []byte("\n")) || err == nil && !bytes.HasSuffix(half, []byte("\n"))
}

func TestChildLife(t *testing.T) {
	if os.Getenv(envKillAt) == "" {
		t.Skip("a child of TestKilledAtEachWrite")
	}
	left, err := strconv.Atoi(os.Getenv(envKillAt))
	require.NoError(t, err)
	w, err := Open(os.Getenv(envWorld))
	require.NoError(t, err)
	w.compactBeyond = -10_000 // so low that the whole file is rewritten from time to time
	whole := w.writeAt
	w.writeAt = func(f *os.File, at int64, content []byte) error {
		if left--; left == 0 {
			_, err := f.WriteAt(content[:len(content)/2], at)
			require.NoError(t, err)
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		return whole(f, at, content)
	}
	life(t, w, fleet.Provider{ID: "one", Credentials: fleet.Credentials{KubeconfigFile: os.Getenv(envCredentials)}})
}

// life makes a peering and a node, and removes both, from Establish to RemovePeering.
func life(t *testing.T, w *World, p fleet.Provider) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	b := New(w, testOptions)
	spec := nodeSpec("group-a-1", 1, p)
	require.NoError(t, b.Establish(ctx, p, nil))
	_, err := b.Join(ctx, spec, nil)
	require.NoError(t, err)
	got := counts(t, w)
	got.Pods = 0 // an earlier call may have left a pod
	require.Equal(t, Counts{
		Peerings: 1, Tenants: 1, Slices: 1, RemoteSlices: 1, VirtualNodes: 1, Nodes: 1, Ready: 1, Stamped: 1,
	}, got)
	require.NoError(t, w.PutPod(ctx, spec.Attempt.ObjectName(), Pod{Name: "pod"}))
	require.NoError(t, b.Drain(ctx, spec.Attempt, false, nil))
	require.Zero(t, counts(t, w).Pods)
	require.NoError(t, b.Return(ctx, spec.Attempt, nil))
	require.NoError(t, b.RemovePeering(ctx, p, nil))
}

func nodeSpec(instance string, number int, p fleet.Provider) backend.NodeSpec {
	a := fleet.Attempt{Group: "group", Instance: instance, Number: number, Provider: p}
	return backend.NodeSpec{Attempt: a, Shape: testShape}
}

func counts(t *testing.T, w *World) Counts {
	t.Helper()
	s, err := w.Snapshot()
	require.NoError(t, err)
	return s.Counts()
}
