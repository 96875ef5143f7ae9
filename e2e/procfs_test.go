package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/proc"
)

// kubelets returns the virtual kubelets of this lab for a provider, by their command lines.
func kubelets(l *lab.Lab, provider *cluster) (pids []int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		args := split(filepath.Join(dir, "cmdline"))
		if len(args) == 0 || filepath.Base(args[0]) != "virtual-kubelet" {
			continue
		}
		all := strings.Join(args, " ")
		if !strings.Contains(all, l.Kubeconfig(lab.Consumer)) || !strings.Contains(all,
			"--foreign-cluster-id="+provider.name) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// likeProcess returns the specification with which a copy of a running process can be started.
func likeProcess(pid int) (proc.Spec, error) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	args := split(filepath.Join(dir, "cmdline"))
	if len(args) == 0 {
		return proc.Spec{}, fmt.Errorf("process %d has no command line", pid)
	}
	cwd, err := os.Readlink(filepath.Join(dir, "cwd"))
	return proc.Spec{Path: args[0], Args: args[1:], Env: split(filepath.Join(dir, "environ")), Dir: cwd}, err
}

// split reads a file of /proc whose strings end with zero bytes.
func split(path string) []string {
	b, err := os.ReadFile(path)
	if err != nil || len(b) == 0 {
		return nil
	}
	return strings.Split(strings.TrimRight(string(b), "\x00"), "\x00")
}
