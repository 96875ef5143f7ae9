package lab_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab"
)

// TestLab starts the smallest lab after an earlier lab has left remains. It makes load balancers assign addresses,
// freezes one process and continues it, and leaves nothing.
func TestLab(t *testing.T) {
	if testing.Short() {
		t.Skip("starts Kubernetes and Liqo")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	l := lab.ForTest(ctx, t, lab.Options{Providers: 1})
	for _, cluster := range append(l.Providers, lab.Consumer) {
		require.FileExists(t, l.Kubeconfig(cluster))
	}
	require.FileExists(t, filepath.Join(l.Bin, "temporal"))
	balanced(ctx, t, l, client(t, l, "provider1"))
	require.NoError(t, l.Signal("provider1", lab.LiqoManager, syscall.SIGSTOP))
	require.NoError(t, l.Signal("provider1", lab.LiqoManager, syscall.SIGCONT))
	pid, err := l.Pid("consumer-apiserver")
	require.NoError(t, err)
	_, err = l.Pid("nobody")
	require.ErrorContains(t, err, "nobody")

	require.NoError(t, l.Down())
	require.NoError(t, l.Down(), "a second time changes nothing")
	require.NoDirExists(t, l.Root)
	cmdline, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	require.Empty(t, cmdline, "the process has ended, or is a zombie")
	_, err = os.Stat(l.Kubeconfig(lab.Consumer))
	require.ErrorIs(t, err, os.ErrNotExist)
}
