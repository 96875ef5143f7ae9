package keep

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/proc"
)

// ContainArg is the first argument of the keeper's program when the program runs as the first process of a container,
// see Contain.
const ContainArg = "contain"

// containFlags are the namespaces of a container that are created in addition to the network namespace. When the
// first process of a container ends, for example because the keeper ends, all other processes in these namespaces end
// too.
const containFlags = unix.CLONE_NEWNS | unix.CLONE_NEWPID

// Contain sets up the mounts of a container for this process, and then replaces the process by the program of the
// container. args contains, in this order, a folder to lay over /usr/bin ("" for none), the program, and the
// program's arguments.
func Contain(args []string) error {
	if len(args) < 2 {
		return errors.New("start container: no program")
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("start container: part its mounts from the machine's: %w", err)
	}
	// In all containers, WireGuard in userspace creates its socket with the same name in /var/run.
	if err := unix.Mount("lab", "/var/run", "tmpfs", 0, ""); err != nil {
		return fmt.Errorf("start container: mount an empty /var/run: %w", err)
	}
	if args[0] != "" {
		if err := unix.Mount("lab", "/usr/bin", "overlay", unix.MS_RDONLY, "lowerdir="+args[0]+":/usr/bin"); err != nil {
			return fmt.Errorf("start container: lay %s over /usr/bin: %w", args[0], err)
		}
	}
	return fmt.Errorf("start container: %s: %w", args[1], unix.Exec(args[1], args[1:], os.Environ()))
}

// startInside starts the program of a container in a network namespace, in the same way as start.
func (c *cluster) startInside(n *netns, name, overlay, path string, args, env []string) (p *proc.Process, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	err = n.do(func() (err error) {
		p, err = c.startSpec(proc.Spec{Name: name, Path: self, Args: append([]string{ContainArg, overlay, path}, args...),
			Env: env, Cloneflags: containFlags})
		return err
	})
	return p, err
}

const tunDevice = "/dev/net/tun"

// CheckGateways returns an error if this machine cannot run gateways. The error lists the features that are missing.
func CheckGateways() error {
	n, err := newNetns()
	if err != nil {
		return lacks("network namespaces", "run as root, or with CAP_SYS_ADMIN and CAP_NET_ADMIN", err)
	}
	defer n.close()
	if err := n.do(openTUN); err != nil {
		return lacks("TUN", "load the module (modprobe tun); in a container, give it the device "+tunDevice, err)
	}
	contained := exec.Command("true")
	contained.SysProcAttr = &syscall.SysProcAttr{Cloneflags: containFlags}
	if err := contained.Run(); err != nil {
		return lacks("mount and PID namespaces", "run as root, or with CAP_SYS_ADMIN", err)
	}
	return nil
}

func lacks(what, remedy string, err error) error {
	return fmt.Errorf("run Liqo's gateways: this machine lacks %s: %w; %s", what, err, remedy)
}

// openTUN creates a TUN device and removes it immediately, to find out whether this is possible.
func openTUN() error {
	fd, err := unix.Open(tunDevice, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", tunDevice, err)
	}
	defer func() { _ = unix.Close(fd) }()
	r, err := unix.NewIfreq("lab" + strconv.Itoa(os.Getpid()))
	if err != nil {
		return err
	}
	r.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, r); err != nil {
		return fmt.Errorf("make TUN device: %w", err)
	}
	return nil
}
