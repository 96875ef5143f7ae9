// Package memlimit starts the processes of a test within a memory limit of the kernel, in the same way as a kubelet
// starts containers.
package memlimit

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// files holds the names of a memory cgroup's files. They differ between version 1 and version 2 of cgroups.
type files struct{ limit, peak, events string }

// known contains the names of the files for each version of cgroups, by the type of the version's file system.
var known = map[string]files{
	"cgroup":  {"memory.limit_in_bytes", "memory.max_usage_in_bytes", "memory.oom_control"},
	"cgroup2": {"memory.max", "memory.peak", "memory.events"},
}

// Group is a memory cgroup that exists until the test ends.
type Group struct {
	dir string
	files
}

// New creates a cgroup whose processes may together use the given number of bytes. If memory cgroups are not
// available, or the process may not create one, New fails the test with the reason.
func New(t testing.TB, bytes int64) *Group {
	t.Helper()
	root, kind, err := mounted("/proc/self/mounts")
	require.NoError(t, err, "this test needs memory cgroups, as root")
	if kind == "cgroup2" {
		err := os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte("+memory"), 0o644)
		require.NoError(t, err, "this test needs memory cgroups, as root")
	}
	dir, err := os.MkdirTemp(root, "liqo-autoscaler-test-")
	require.NoError(t, err, "this test needs memory cgroups, as root")
	g := &Group{dir, known[kind]}
	t.Cleanup(func() { _ = os.Remove(dir) })
	require.NoError(t, os.WriteFile(g.in(g.limit), []byte(strconv.FormatInt(bytes, 10)), 0o644))
	return g
}

// mounted returns the mount point of memory cgroups, and the type of the file system there. If both versions of
// cgroups are mounted, it returns version 1, because the memory controller then belongs to version 1.
func mounted(table string) (root, kind string, err error) {
	text, err := os.ReadFile(table)
	if err != nil {
		return "", "", err
	}
	second := ""
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line) // device, folder, type, options
		switch {
		case len(fields) < 4:
		case fields[2] == "cgroup" && strings.Contains(","+fields[3]+",", ",memory,"):
			return fields[1], fields[2], nil
		case fields[2] == "cgroup2":
			second = fields[1]
		}
	}
	if second == "" {
		return "", "", fmt.Errorf("%s mounts no memory cgroups: neither cgroup with memory nor cgroup2", table)
	}
	return second, "cgroup2", nil
}

func (g *Group) in(name string) string { return filepath.Join(g.dir, name) }

// Command returns a shell command. The shell moves itself into the group, and then the program replaces the shell.
func (g *Group) Command(path string, args ...string) (shell string, its []string) {
	return "/bin/sh", append([]string{"-c", `echo $$ >"$0" && exec "$@"`, g.in("cgroup.procs"), path}, args...)
}

// Peak returns the highest memory use of the group in bytes.
func (g *Group) Peak(t testing.TB) int64 {
	t.Helper()
	text, err := os.ReadFile(g.in(g.peak))
	require.NoError(t, err)
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	require.NoError(t, err)
	return n
}

// Killed returns the number of processes that the kernel has killed because of the limit.
func (g *Group) Killed(t testing.TB) int {
	t.Helper()
	f, err := os.Open(g.in(g.events))
	require.NoError(t, err)
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var n int
		if _, err := fmt.Sscanf(lines.Text(), "oom_kill %d", &n); err == nil {
			return n
		}
	}
	require.Fail(t, "the kernel does not count killed processes", "%s", f.Name())
	return 0
}
