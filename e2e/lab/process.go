package lab

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Names of processes, each after the cluster's name and a dash: "provider1-liqo-cm". The runner has no cluster.
const (
	APIServer          = "apiserver"
	Scheduler          = "scheduler"
	LiqoManager        = "liqo-cm"
	LiqoCRDReplicator  = "crd-replicator"
	LiqoWebhook        = "liqo-webhook"
	KubeControllerMngr = "kcm"
)

// Pid is the process id of a process by its name in <root>/pids, the newest when it was started again.
func (l *Lab) Pid(name string) (int, error) {
	f, err := os.Open(filepath.Join(l.Root, "pids"))
	if err != nil {
		return 0, fmt.Errorf("find process %s: %w", name, err)
	}
	defer f.Close()
	pid := 0
	for s := bufio.NewScanner(f); s.Scan(); {
		if fields := strings.Fields(s.Text()); len(fields) >= 2 && fields[1] == name {
			pid, _ = strconv.Atoi(fields[0])
		}
	}
	if pid == 0 {
		return 0, fmt.Errorf("find process %s: not in %s", name, f.Name())
	}
	return pid, nil
}

// Signal sends a signal to one process: SIGSTOP and SIGCONT freeze and thaw it, SIGKILL is a crash. The lab starts nothing
// again but virtual kubelets.
func (l *Lab) Signal(cluster, process string, s syscall.Signal) error {
	pid, err := l.Pid(cluster + "-" + process)
	if err != nil {
		return err
	}
	if err := syscall.Kill(pid, s); err != nil {
		return fmt.Errorf("signal %s-%s (%d): %w", cluster, process, pid, err)
	}
	return nil
}
