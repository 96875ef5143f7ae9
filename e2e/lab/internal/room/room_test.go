package room

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMain runs the program that Run starts.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == InsideArg {
		code, err := Inside(os.Args[2:])
		if err != nil {
			_, _ = os.Stderr.WriteString(err.Error() + "\n")
		}
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// everything leaves the same kinds of remains as a kubelet: orphaned processes, mounts, cgroups, a network interface,
// and files in /var and /etc.
const everything = `set -e
sleep 1000 & setsid sleep 1000 &
mkdir -p /var/lib/kubelet/here && mount -t tmpfs left /var/lib/kubelet/here
echo left > /var/lib/room-left; echo left > /etc/room-left
for g in $(find /sys/fs/cgroup -name cgroup.procs -exec dirname {} + | sort -u); do mkdir -p $g/pods/one 2>/dev/null || true; done
ip link add left0 type bridge
`

func skipUnlessPossible(t *testing.T) {
	t.Helper()
	if err := Check(); err != nil {
		t.Skip(err)
	}
}

func TestRoomLeavesNothing(t *testing.T) {
	skipUnlessPossible(t)
	before, err := machine()
	require.NoError(t, err)
	require.NoError(t, Run(t.Context(), []string{"bash", "-c", everything}))
	after, err := machine()
	require.NoError(t, err)
	require.Equal(t, before, after)
	require.NoFileExists(t, "/var/lib/room-left")
	require.NoFileExists(t, "/etc/room-left")
	require.Empty(t, groups(t))
}

func TestRoomReturnsTheExitCodeOfItsCommand(t *testing.T) {
	skipUnlessPossible(t)
	err := Run(t.Context(), []string{"bash", "-c", "exit 7"})
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 7, exit.ExitCode())
	require.Error(t, Run(t.Context(), []string{"/no/such/program"}))
}

// The creator of a room is killed. The room's processes die with the creator, and the next room removes the cgroups
// of the dead room.
func TestRemainsOfAKilledRoomAreRemoved(t *testing.T) {
	skipUnlessPossible(t)
	held := exec.Command(os.Args[0], "-test.run", "^TestARoomForAnother$", "-test.v")
	held.Env = append(os.Environ(), "ROOM_TEST_HOLD=1")
	out, err := held.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, held.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.Contains(lines.Text(), "inside now") {
		t.Log(lines.Text())
	}
	require.NoError(t, held.Process.Kill())
	require.Error(t, held.Wait())
	require.NotEmpty(t, groups(t), "the kill has come too late")
	require.NoError(t, Run(t.Context(), []string{"true"}))
	require.Empty(t, groups(t))
}

// TestARoomForAnother makes the room that another test kills.
func TestARoomForAnother(t *testing.T) {
	if os.Getenv("ROOM_TEST_HOLD") == "" {
		t.Skip("for TestRemainsOfAKilledRoomAreRemoved")
	}
	require.NoError(t, Run(t.Context(), []string{"bash", "-c", everything + "echo inside now; sleep 1000"}))
}

// groups returns the cgroups of rooms.
func groups(t *testing.T) (found []string) {
	t.Helper()
	all, err := hierarchies()
	require.NoError(t, err)
	for _, h := range all {
		dirs, err := filepath.Glob(filepath.Join(h.own, prefix+"*"))
		require.NoError(t, err)
		found = append(found, dirs...)
	}
	return found
}

func TestMountsAndCgroupsAreRead(t *testing.T) {
	const sys = "/sys/fs/cgroup"
	for line, want := range map[string]hierarchy{
		"30 25 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw":         {mount: sys},
		"32 30 0:28 / /sys/fs/cgroup/cpu rw shared:10 - cgroup cgroup rw,cpu,cpuacct": {sys + "/cpu", "cpu,cpuacct", ""},
		"33 30 0:29 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd": {sys + "/systemd",
			"none,name=systemd", ""},
	} {
		got, root, ok := parseMount(line)
		require.True(t, ok, line)
		require.Equal(t, "/", root)
		require.Equal(t, want, got)
	}
	for _, line := range []string{"", "x", "1 2 3:4 / /proc rw - proc proc rw", "1 2 3:4 / /x rw cgroup"} {
		_, _, ok := parseMount(line)
		require.False(t, ok, line)
	}
	const groups = "9:name=systemd:/a\n4:cpu,cpuacct:/b:c\n0::/d\n"
	require.Equal(t, "/a", cgroupOf(groups, hierarchy{options: "none,name=systemd"}))
	require.Equal(t, "/b:c", cgroupOf(groups, hierarchy{options: "cpu,cpuacct"}))
	require.Equal(t, "/d", cgroupOf(groups, hierarchy{}))
	require.Equal(t, "/", cgroupOf(groups, hierarchy{options: "pids"}))
}
