package lab_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab"
)

// TestKilledLabLeavesNothing ends labs with connected gateways by force. When the process that started the lab is
// killed, the lab ends itself. When the lab's keeper is killed too, the lab's processes still die, and the next lab
// removes the remains.
func TestKilledLabLeavesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("starts Kubernetes and Liqo")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	run := filepath.Join(t.TempDir(), "run")
	before := machine(t)
	out, err := exec.CommandContext(ctx, "go", "build", "-o", run, "./run").CombinedOutput()
	require.NoError(t, err, "%s", out)

	owner, root, processes := owned(ctx, t, run)
	spaces := namespaces(t, processes)
	require.NoError(t, owner.Process.Kill())
	began := time.Now()
	require.Eventually(t, func() bool {
		_, err := os.Stat(root)
		return errors.Is(err, os.ErrNotExist) && !anyRuns(processes) && members(t, spaces) == 0
	}, 2*time.Minute, 10*time.Millisecond)
	fmt.Printf("STEP lab/killed/owner %.2f\n", time.Since(began).Seconds())

	owner, root, processes = owned(ctx, t, run)
	spaces = namespaces(t, processes)
	for name, pid := range processes {
		if name == "keeper" {
			require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
		}
	}
	require.NoError(t, owner.Process.Kill())
	began = time.Now()
	require.Eventually(t, func() bool { return !anyRuns(processes) && members(t, spaces) == 0 }, 2*time.Minute,
		10*time.Millisecond)
	fmt.Printf("STEP lab/killed/keeper-and-owner %.2f\n", time.Since(began).Seconds())
	require.DirExists(t, root)
	require.Equal(t, before, machine(t))

	l := lab.ForTest(ctx, t, lab.Options{Providers: 1}) // starts on the remains of the killed lab
	require.Equal(t, root, l.Root)
	pid, err := l.Pid("keeper")
	require.NoError(t, err)
	require.NotEqual(t, processes["keeper"], pid)
	require.NoError(t, l.Down())
}

// owned makes another process start a lab and connect the lab's clusters. It returns this process (the owner), the
// lab's root, and the pids of the lab's processes by name.
func owned(ctx context.Context, t *testing.T, run string) (owner *exec.Cmd, root string, processes map[string]int) {
	t.Helper()
	owner = exec.CommandContext(ctx, run, "-providers", "1", "-gateways", "sh", "-c", `cd "$LIQO_AUTOSCALER_LAB" &&
		"$LAB_BIN/liqo/liqoctl" network connect --wait --skip-confirm --kubeconfig consumer.kubeconfig \
			--remote-kubeconfig provider1.kubeconfig >&2 && pwd && exec sleep 600`)
	var stderr bytes.Buffer
	owner.Stderr = &stderr
	owner.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdout, err := owner.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, owner.Start())
	t.Cleanup(func() { _ = syscall.Kill(-owner.Process.Pid, syscall.SIGKILL); _ = owner.Wait() }) // with its command
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err, "%s", &stderr)
	root = strings.TrimSpace(line)
	text, err := os.ReadFile(filepath.Join(root, "pids"))
	require.NoError(t, err)
	processes = map[string]int{}
	for _, l := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		fields := strings.Fields(l)
		pid, err := strconv.Atoi(fields[0])
		require.NoError(t, err)
		processes[fields[1]] = pid
	}
	require.Len(t, processes, 1+2*(8+2), "the keeper, eight processes of each cluster, two of its gateway: %v", processes)
	require.True(t, anyRuns(processes))
	return owner, root, processes
}

// namespaces returns the network namespaces of these processes that differ from ours.
func namespaces(t *testing.T, processes map[string]int) (out []string) {
	t.Helper()
	own, err := os.Readlink("/proc/self/ns/net")
	require.NoError(t, err)
	for name, pid := range processes {
		space, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
		require.NoError(t, err, name)
		if space != own && !slices.Contains(out, space) {
			out = append(out, space)
		}
	}
	require.Len(t, out, 2, "one of each gateway")
	return out
}

// anyRuns reports whether any of the processes runs. A zombie, whose command line is empty, does not count.
func anyRuns(processes map[string]int) bool {
	for _, pid := range processes {
		if cmdline, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); len(cmdline) > 0 {
			return true
		}
	}
	return false
}

// TestErrorOfTheStartNamesTheProcess occupies a port of the lab. The error of the start names the process that needs
// this port, and contains the end of the process's log.
func TestErrorOfTheStartNamesTheProcess(t *testing.T) {
	if testing.Short() {
		t.Skip("starts Kubernetes")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	slot, _ := strconv.Atoi(os.Getenv(lab.EnvSlot))
	taken, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 16000+400*slot+20+1)) // provider1's etcd
	require.NoError(t, err)
	defer taken.Close()
	began := time.Now()
	_, err = lab.Start(ctx, lab.Options{Providers: 1})
	require.ErrorContains(t, err, "start cluster provider1")
	require.ErrorContains(t, err, "provider1-etcd: process ended")
	require.ErrorContains(t, err, "address already in use")
	require.Less(t, time.Since(began), time.Minute, "immediately, not at the timeout")
	require.NoDirExists(t, filepath.Join(os.TempDir(), "lab-"+strconv.Itoa(slot)))
}
