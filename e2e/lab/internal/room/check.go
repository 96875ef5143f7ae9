package room

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// cniPlugins is the folder of Debian's package containernetworking-plugins.
const cniPlugins = "/usr/lib/cni"

// Check returns an error if this machine lacks features that a kubelet with containers needs. The error lists each
// missing feature and its remedy.
func Check() error {
	var missing []error
	for _, name := range []string{"containerd", "ctr", "runc", "ip"} {
		if _, err := exec.LookPath(name); err != nil {
			missing = append(missing, fmt.Errorf("the program %s", name))
		}
	}
	if !exists(cniPlugins + "/bridge") {
		missing = append(missing, errors.New(cniPlugins+"/bridge"))
	}
	if missing != nil {
		missing = append(missing, errors.New("the packages containerd, runc, containernetworking-plugins and iproute2 of "+
			"Debian have them: apt-get install --no-install-recommends containerd runc containernetworking-plugins iproute2"))
	}
	if text, err := os.ReadFile("/proc/filesystems"); err != nil || !strings.Contains(string(text), "overlay") {
		missing = append(missing, errors.New("the file system overlay: modprobe overlay"))
	}
	if _, err := hierarchies(); err != nil {
		missing = append(missing, err)
	}
	namespaced := exec.Command("ip", "link", "add", "probe0", "type", "bridge")
	namespaced.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces}
	if out, err := namespaced.CombinedOutput(); err != nil {
		missing = append(missing, fmt.Errorf("namespaces with a network bridge in them (%w %s): run as root, or with "+
			"CAP_SYS_ADMIN and CAP_NET_ADMIN", err, out))
	}
	if missing != nil {
		return fmt.Errorf("run containers: this machine lacks: %w", errors.Join(missing...))
	}
	return nil
}
