package lab

import (
	"fmt"
	"syscall"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab/internal/pids"
)

// Names of processes. The cluster's name and a dash precede them, as in "provider1-liqo-cm".
const (
	Etcd               = "etcd"
	APIServer          = "apiserver"
	Scheduler          = "scheduler"
	KubeControllerMngr = "kcm"
	LiqoManager        = "liqo-cm"
	LiqoCRDReplicator  = "crd-replicator"
	LiqoWebhook        = "liqo-webhook"
	LiqoIPAM           = "ipam"
)

// VirtualKubelet returns the name of the process behind a virtual node.
func VirtualKubelet(node string) string { return "vk-" + node }

// Gateway returns the name of a process of a cluster's gateway to another cluster. This process pings through the
// tunnel and writes the status of the Connection.
func Gateway(remote string) string { return "gw-" + remote + "-gateway" }

// WireGuard returns the name of the process of the tunnel.
func WireGuard(remote string) string { return "gw-" + remote + "-wireguard" }

// Pid returns the pid of a process by its name in <root>/pids. When the process was restarted, it returns the newest
// pid.
func (l *Lab) Pid(name string) (int, error) {
	e, err := pids.Find(l.Root, name)
	return e.PID, err
}

// Signal sends a signal to one process. SIGSTOP freezes the process, SIGCONT continues it, and SIGKILL acts like a
// crash. The lab restarts Liqo's processes after a second, or later when they end immediately. It does not restart
// processes of Kubernetes.
func (l *Lab) Signal(cluster, process string, s syscall.Signal) error {
	e, err := pids.Find(l.Root, cluster+"-"+process)
	if err != nil {
		return err
	}
	if !e.Alive() {
		return fmt.Errorf("signal %s (%d): it has ended", e.Name, e.PID)
	}
	if err := syscall.Kill(e.PID, s); err != nil {
		return fmt.Errorf("signal %s (%d): %w", e.Name, e.PID, err)
	}
	return nil
}
