package keep

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/proc"
)

// TestMain lets the test binary run as the keeper in two roles: as the first process of a container, and as a process
// that checks the machine.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == ContainArg:
		fmt.Fprintln(os.Stderr, Contain(os.Args[2:]))
		os.Exit(1)
	case os.Getenv("LAB_TEST_CHECK") != "":
		fmt.Println(CheckGateways())
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestMissingFeaturesAreNamed checks that an error names the missing feature and the remedy.
func TestMissingFeaturesAreNamed(t *testing.T) {
	require.NoError(t, CheckGateways(), "these tests make namespaces and TUN devices")
	check := func(attr *syscall.SysProcAttr, shell string) string {
		cmd := exec.Command("sh", "-c", shell+` exec "$0"`, os.Args[0])
		cmd.Env, cmd.SysProcAttr = append(os.Environ(), "LAB_TEST_CHECK=1"), attr
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return strings.TrimSpace(string(out))
	}
	private := &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}
	require.Equal(t, "<nil>", check(private, ""))
	require.Equal(t, "run Liqo's gateways: this machine lacks TUN: open /dev/net/tun: no such file or directory; "+
		"load the module (modprobe tun); in a container, give it the device /dev/net/tun",
		check(private, "mount -t tmpfs none /dev/net &&"))
	// This user has no permissions, but has access to this binary.
	unprivileged := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 1000, HostID: os.Getuid(), Size: 1}}}
	require.Equal(t, "run Liqo's gateways: this machine lacks network namespaces: make network namespace: "+
		"operation not permitted; run as root, or with CAP_SYS_ADMIN and CAP_NET_ADMIN", check(unprivileged, ""))
}

// TestPacketsReachTheCurrentServer checks that packets to an endpoint reach its current server, and that the answers
// reach the sender of the last packet. No packet passes while the endpoint has no server.
func TestPacketsReachTheCurrentServer(t *testing.T) {
	home, err := os.Readlink(threadNetns)
	require.NoError(t, err)
	client, one, two := namespace(t), namespace(t), namespace(t)
	endpoint := netip.MustParseAddrPort("172.30.1.2:51840")
	echo(t, one, "one")
	echo(t, two, "two")
	var leads atomic.Pointer[place]
	leads.Store(&place{one, 7000})
	require.NoError(t, client.own(endpoint.Addr()))
	require.NoError(t, client.relayUDP(endpoint, func() place { return *leads.Load() }))

	first, second := dial(t, client, endpoint), dial(t, client, endpoint)
	require.Equal(t, "one: a", ask(first, "a"))
	require.Equal(t, "one: b", ask(second, "b"), "a client that was started again has another port")
	leads.Store(&place{})
	require.Empty(t, ask(second, "lost"))
	leads.Store(&place{one, 7000})
	require.Equal(t, "one: c", ask(second, "c"))
	leads.Store(&place{two, 7000})
	require.Equal(t, "two: d", ask(second, "d"), "the server's pod was replaced")
	two.close()
	require.Empty(t, ask(second, "lost"))
	leads.Store(&place{one, 7000})
	require.Equal(t, "one: e", ask(second, "e"))

	now, err := os.Readlink(threadNetns)
	require.NoError(t, err)
	require.Equal(t, home, now, "threads come back")
}

// TestCutWireAlsoStopsAnswers checks that a cut wire also stops packets from the server.
func TestCutWireAlsoStopsAnswers(t *testing.T) {
	client, server := namespace(t), namespace(t)
	endpoint := netip.MustParseAddrPort("172.30.1.2:51840")
	var listener *net.UDPConn
	require.NoError(t, server.do(func() (err error) {
		listener, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7000})
		return err
	}))
	server.keep(listener)
	var cut atomic.Bool
	require.NoError(t, client.own(endpoint.Addr()))
	require.NoError(t, client.relayUDP(endpoint, func() place {
		if cut.Load() {
			return place{}
		}
		return place{server, 7000}
	}))
	c := dial(t, client, endpoint)
	_, err := c.Write([]byte("hello"))
	require.NoError(t, err)
	buffer := make([]byte, 100)
	_, from, err := listener.ReadFromUDPAddrPort(buffer)
	require.NoError(t, err)
	say := func(s string) {
		_, err = listener.WriteToUDPAddrPort([]byte(s), from)
		require.NoError(t, err)
	}
	say("passes")
	require.Equal(t, "passes", hear(c))
	cut.Store(true)
	say("is lost")
	require.Empty(t, hear(c))
	cut.Store(false)
	say("passes again")
	require.Equal(t, "passes again", hear(c))
}

// TestNamespaceReachesOnlyTheRelayedPort checks that a namespace reaches only the one relayed port outside.
func TestNamespaceReachesOnlyTheRelayedPort(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("hello"))
			_ = c.Close()
		}
	}()
	address := listener.Addr().(*net.TCPAddr)
	inside := namespace(t)
	call := func() (c net.Conn, err error) {
		err = inside.do(func() error {
			c, err = net.DialTCP("tcp4", nil, address)
			return err
		})
		return c, err
	}
	_, err = call()
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.NoError(t, inside.relayTCP(address.Port))
	c, err := call()
	require.NoError(t, err)
	said, err := io.ReadAll(c)
	require.NoError(t, err)
	require.Equal(t, "hello", string(said))
}

// TestContainerIsIsolatedAndEndsWithItsProgram checks that the program of a container sees its own files and processes.
// The container's remaining processes end with the program.
func TestContainerIsIsolatedAndEndsWithItsProgram(t *testing.T) {
	overlay := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(overlay, "only-here"), []byte("#!/bin/sh\necho overlaid\n"), 0o755))
	c := &cluster{lab: &lab{Config: Config{Root: t.TempDir()}}, name: "c"}
	n := namespace(t)
	before, err := os.ReadFile("/proc/self/mounts")
	require.NoError(t, err)
	p, err := c.startInside(n, "box", overlay, "/bin/sh", []string{"-c",
		`only-here; ls -A /var/run | wc -l; echo pid $$; grep -c : /proc/net/dev; sleep 600 & echo $VARIABLE; wait`},
		[]string{"VARIABLE=value"})
	require.NoError(t, err)
	t.Cleanup(p.Kill)
	require.Eventually(t, func() bool { return strings.HasSuffix(proc.Tail(p.Log, 5), "value") }, 2*time.Minute,
		10*time.Millisecond, "%s", proc.Tail(p.Log, 5))
	require.Equal(t, "overlaid\n0\npid 1\n1\nvalue", proc.Tail(p.Log, 5), "an empty /var/run, and only loopback")
	after, err := os.ReadFile("/proc/self/mounts")
	require.NoError(t, err)
	require.Equal(t, string(before), string(after))

	space, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", p.Pid()))
	require.NoError(t, err)
	require.Equal(t, 2, members(t, "pid", space), "the shell and what it started")
	p.Kill()
	require.Eventually(t, func() bool { return members(t, "pid", space) == 0 }, 2*time.Minute, 10*time.Millisecond)
}

// members returns the number of processes in a namespace.
func members(t *testing.T, kind, space string) int {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/ns/" + kind)
	require.NoError(t, err)
	n := 0
	for _, path := range all {
		if to, err := os.Readlink(path); err == nil && to == space {
			n++
		}
	}
	return n
}

func namespace(t *testing.T) *netns {
	t.Helper()
	n, err := newNetns()
	require.NoError(t, err)
	t.Cleanup(n.close)
	return n
}

// echo answers packets to port 7000.
func echo(t *testing.T, n *netns, name string) {
	t.Helper()
	var c *net.UDPConn
	require.NoError(t, n.do(func() (err error) {
		c, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7000})
		return err
	}))
	n.keep(c)
	go func() {
		buffer := make([]byte, 1000)
		for {
			size, from, err := c.ReadFromUDPAddrPort(buffer)
			if err != nil {
				return
			}
			_, _ = c.WriteToUDPAddrPort(append([]byte(name+": "), buffer[:size]...), from)
		}
	}()
}

func dial(t *testing.T, n *netns, to netip.AddrPort) *net.UDPConn {
	t.Helper()
	var c *net.UDPConn
	require.NoError(t, n.do(func() (err error) {
		c, err = net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(to))
		return err
	}))
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func ask(c *net.UDPConn, what string) string {
	_, _ = c.Write([]byte(what))
	return hear(c)
}

// hear returns the next packet. It returns "" when none arrives within a short time.
func hear(c *net.UDPConn) string {
	_ = c.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	buffer := make([]byte, 1000)
	size, _ := c.Read(buffer)
	return string(buffer[:size])
}
