package lab

import (
	"fmt"
	"syscall"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab/internal/pids"
)

// These constants are names of processes. In the list of processes, the cluster's name and a dash precede the name,
// as in "provider1-liqo-cm".
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

// VirtualKubelet returns the name of the process of the virtual kubelet of a virtual node.
func VirtualKubelet(node string) string { return "vk-" + node }

// Gateway returns the name of one of the two processes of a cluster's gateway to the cluster remote. This process
// pings through the tunnel and writes the status of the Connection.
func Gateway(remote string) string { return "gw-" + remote + "-gateway" }

// WireGuard returns the name of the second process of the gateway, which provides the tunnel.
func WireGuard(remote string) string { return "gw-" + remote + "-wireguard" }

// Pid returns the pid of the process with this name in <root>/pids. If the process was restarted, Pid returns the
// newest pid.
func (l *Lab) Pid(name string) (int, error) {
	e, err := pids.Find(l.Root, name)
	return e.PID, err
}

// Signal sends a signal to one process. SIGSTOP stops the process until SIGCONT, and SIGKILL acts like a crash. When
// a process of Liqo ends, the lab restarts it after a second, or after a longer pause if it ends repeatedly. The lab
// does not restart processes of Kubernetes.
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
