package keep

import (
	"fmt"
	"io"
	"net/netip"
	"os"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// netns is a network namespace with only loopback. It need not be removed: the kernel removes it when it is closed
// and contains no process, or when the keeper ends.
type netns struct {
	file *os.File

	mu     sync.Mutex
	inside []io.Closer // our sockets, without which the kernel might remove the namespace
	closed bool
}

const threadNetns = "/proc/thread-self/ns/net"

func newNetns() (*netns, error) {
	n := &netns{}
	unshare := func() error { return unix.Unshare(unix.CLONE_NEWNET) }
	err := there(unshare, func() (err error) {
		if err = configure("lo", unix.SIOCSIFFLAGS, func(r *unix.Ifreq) error {
			r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
			return nil
		}); err != nil {
			return fmt.Errorf("set lo up: %w", err)
		}
		n.file, err = os.Open(threadNetns)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("make network namespace: %w", err)
	}
	return n, nil
}

// there runs the function f in another network namespace. It locks the goroutine to its thread, moves the thread to
// the namespace with the function `enter`, calls f, and moves the thread back. The thread must not end instead,
// because processes that were started from a thread die with the thread.
func there(enter, f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	home, err := os.Open(threadNetns)
	if err != nil {
		return err
	}
	defer home.Close()
	if err := enter(); err != nil {
		return err
	}
	err = f()
	if lost := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); lost != nil {
		panic(fmt.Sprintf("return to the network namespace of this process: %v", lost)) // not observed so far
	}
	return err
}

// do runs f inside the namespace. The sockets and processes that f creates stay in the namespace.
func (n *netns) do(f func() error) error {
	return there(func() error { return unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET) }, f)
}

// keep ensures that c is closed when the namespace is closed. If the namespace is already closed, keep closes c
// immediately.
func (n *netns) keep(c io.Closer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		_ = c.Close()
		return
	}
	n.inside = append(n.inside, c)
}

func (n *netns) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	for _, c := range n.inside {
		_ = c.Close()
	}
	n.file.Close()
}

// own adds the address ip to the loopback interface of the namespace.
func (n *netns) own(ip netip.Addr) error {
	const name = "lo:1"
	set := func(addr netip.Addr) func(*unix.Ifreq) error {
		return func(r *unix.Ifreq) error { return r.SetInet4Addr(addr.AsSlice()) }
	}
	err := n.do(func() error {
		if err := configure(name, unix.SIOCSIFADDR, set(ip)); err != nil {
			return err
		}
		return configure(name, unix.SIOCSIFNETMASK, set(netip.AddrFrom4([4]byte{255, 255, 255, 255})))
	})
	if err != nil {
		return fmt.Errorf("add address %s: %w", ip, err)
	}
	return nil
}

// configure sends one request about a network interface to the kernel.
func configure(name string, request uint, set func(*unix.Ifreq) error) error {
	r, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	if err := set(r); err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	return unix.IoctlIfreq(fd, request, r)
}
