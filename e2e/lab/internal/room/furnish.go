package room

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const cgroupRoot = "/sys/fs/cgroup"

// furnish sets up the namespaces of a room: the mounts, the cgroups, the host name and the network. The calling
// process must be the first process in these namespaces.
func furnish(name string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("part its mounts from the machine's: %w", err)
	}
	all, err := hierarchies()
	if err != nil {
		return err
	}
	for _, m := range mounts(all) {
		if err := m.mount(); err != nil {
			return err
		}
	}
	if err := delegate(all); err != nil {
		return err
	}
	// A kubelet passes mounts on to its containers. This works only if the mounts have shared propagation.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("share its mounts with its containers: %w", err)
	}
	if err := unix.Sethostname([]byte(name)); err != nil {
		return fmt.Errorf("set host name: %w", err)
	}
	if err := network(); err != nil {
		return err
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		return fmt.Errorf("let pods reach the node: %w", err)
	}
	return nil
}

// mounting is one mount of a room.
type mounting struct{ kind, target, options string }

func (m mounting) mount() error {
	if err := os.MkdirAll(m.target, 0o755); err != nil {
		return fmt.Errorf("mount %s: %w", m.target, err)
	}
	if m.kind == "overlay" {
		upper, work := "/run/over"+m.target+"/upper", "/run/over"+m.target+"/work"
		if err := errors.Join(os.MkdirAll(upper, 0o755), os.MkdirAll(work, 0o755)); err != nil {
			return fmt.Errorf("mount %s: %w", m.target, err)
		}
		m.options = "lowerdir=" + m.target + ",upperdir=" + upper + ",workdir=" + work
	}
	if err := unix.Mount(m.kind, m.target, m.kind, 0, m.options); err != nil {
		return fmt.Errorf("mount %s (%s) in its place: %w", m.target, m.kind, err)
	}
	return nil
}

// mounts returns the mounts of a room, in the order in which they must be made. containerd gets a tmpfs, because it
// makes overlays, and the upper folder of an overlay cannot be in another overlay.
func mounts(all []hierarchy) []mounting {
	out := []mounting{{"proc", "/proc", ""}, {"sysfs", "/sys", ""}}
	if len(all) > 1 || !all[0].v2() {
		out = append(out, mounting{"tmpfs", cgroupRoot, "mode=755"})
	}
	for _, h := range all {
		if h.v2() {
			out = append(out, mounting{"cgroup2", h.mount, ""})
		} else {
			out = append(out, mounting{"cgroup", h.mount, h.options})
		}
	}
	return append(out, mounting{"tmpfs", "/run", "mode=755"}, mounting{"overlay", "/var", ""},
		mounting{"overlay", "/etc", ""}, mounting{"tmpfs", "/var/lib/containerd", ""},
		mounting{"tmpfs", "/var/lib/kubelet", ""})
}

// delegate enables the controllers of cgroup version 2 for a kubelet. The kernel allows no process in a cgroup whose
// child cgroups have controllers. Therefore delegate moves the first process into a child cgroup.
func delegate(all []hierarchy) error {
	for _, h := range all {
		if !h.v2() || len(all) > 1 {
			continue
		}
		first := filepath.Join(h.mount, "first")
		if err := os.Mkdir(first, 0o755); err != nil {
			return fmt.Errorf("delegate cgroup: %w", err)
		}
		if err := join(first); err != nil {
			return err
		}
		controllers, err := os.ReadFile(filepath.Join(h.mount, "cgroup.controllers"))
		if err != nil {
			return fmt.Errorf("delegate cgroup: %w", err)
		}
		for _, c := range strings.Fields(string(controllers)) {
			if err := os.WriteFile(filepath.Join(h.mount, "cgroup.subtree_control"), []byte("+"+c), 0o644); err != nil {
				return fmt.Errorf("delegate controller %s: %w", c, err)
			}
		}
	}
	return nil
}

// network enables loopback, and sets a default route over an interface that leads nowhere. Liqo needs the route,
// because it uses the interface of the default route.
func network() error {
	for _, args := range []string{"link set lo up", "link add lab0 type bridge", "address add 192.168.255.1/24 dev lab0",
		"link set lab0 up", "route add default dev lab0"} {
		if out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); err != nil {
			return fmt.Errorf("make its network: ip %s: %w: %s", args, err, out)
		}
	}
	return nil
}
