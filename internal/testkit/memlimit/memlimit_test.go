package memlimit

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMountedCgroupsAreFound(t *testing.T) {
	for name, tc := range map[string]struct{ table, root, kind string }{
		"1": {"cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\ncgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n",
			"/sys/fs/cgroup/memory", "cgroup"},
		"2":    {"cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n", "/sys/fs/cgroup", "cgroup2"},
		"both": {"cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\ncgroup /m cgroup rw,memory 0 0\n", "/m", "cgroup"},
		"none": {"proc /proc proc rw 0 0\n\n", "", ""},
	} {
		table := filepath.Join(t.TempDir(), "mounts")
		require.NoError(t, os.WriteFile(table, []byte(tc.table), 0o600))
		root, kind, err := mounted(table)
		require.Equal(t, tc.root, root, name)
		require.Equal(t, tc.kind, kind, name)
		require.Equal(t, tc.root == "", err != nil, name)
	}
}

// The kernel ends a program that exceeds the limit of its cgroup. The group counts this.
func TestProgramBeyondItsLimitIsKilled(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	if _, _, err := mounted("/proc/self/mounts"); err != nil {
		t.Skip(err)
	}
	g := New(t, 32<<20)
	run := func(script string) error {
		path, args := g.Command("/bin/sh", "-c", script)
		return exec.CommandContext(t.Context(), path, args...).Run()
	}
	require.NoError(t, run("true"))
	require.Zero(t, g.Killed(t))
	require.Error(t, run("head -c 100000000 /dev/zero | tail"))
	require.Positive(t, g.Killed(t))
	require.GreaterOrEqual(t, g.Peak(t), int64(31<<20))
}
