package pids_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab/internal/pids"
)

func sleeper(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _, _ = cmd.Process.Wait() })
	return cmd
}

func TestClearEndsARecordedLab(t *testing.T) {
	root := filepath.Join(t.TempDir(), "lab")
	require.NoError(t, os.MkdirAll(filepath.Join(root, "log"), 0o755))
	first, again := sleeper(t), sleeper(t)
	require.NoError(t, pids.Append(root, pids.Keeper, first.Process.Pid))
	require.NoError(t, pids.Append(root, "etcd", again.Process.Pid))
	e, err := pids.Find(root, "etcd")
	require.NoError(t, err)
	require.True(t, e.Alive())

	require.NoError(t, pids.Clear(root))
	require.False(t, e.Alive(), "dead, although the zombie still exists")
	require.NoDirExists(t, root)
	require.NoError(t, pids.Clear(root), "nothing left to do")
}

func TestClearSparesAReusedPid(t *testing.T) {
	root := t.TempDir()
	other := sleeper(t)
	require.NoError(t, pids.Append(root, "etcd", other.Process.Pid))
	list := filepath.Join(root, "pids")
	text, err := os.ReadFile(list)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(list, append(text[:len(text)-1], "0\n"...), 0o600)) // ten times the start time
	require.NoError(t, pids.Clear(root))
	cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", other.Process.Pid))
	require.NoError(t, err)
	require.NotEmpty(t, cmdline, "still runs, and is no zombie")
}

func TestClearLeavesOtherFoldersAlone(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, pids.Clear(root))
	require.DirExists(t, root)
}

func TestFindReturnsTheNewestProcess(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, "pids"), []byte("10 a 1\n11 b 1\n12 a 2\nbroken\n"), 0o600))
	e, err := pids.Find(root, "a")
	require.NoError(t, err)
	require.Equal(t, pids.Entry{PID: 12, Name: "a", Start: "2"}, e)
	_, err = pids.Find(root, "nobody")
	require.ErrorContains(t, err, "nobody")
}
