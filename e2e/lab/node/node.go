// Package node starts a real node of a lab's cluster in a room (command lab/room). The node has containerd, runc and
// a kubelet of the cluster's version. A room can contain one node. The node ends together with the room.
package node

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab/internal/room"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/proc"
)

// Options describes the node.
type Options struct {
	Name       string // name of the Node
	Kubeconfig string // kubeconfig of an administrator of the node's cluster
	Bin        string // folder with the binary kubelet, see lab.Options.Kubelet
	Logs       string // folder for containerd.log and kubelet.log
	IP         string // address of the node, such as 192.168.201.2
	Pods       string // range of the pods' addresses, such as 10.201.0.0/16
}

// Node is a running node.
type Node struct {
	containerd, kubelet *proc.Process
}

//go:embed containerd.toml kubelet.yaml network.json
var configs embed.FS

// patience bounds the start of containerd.
const patience = 30 * time.Second

// Start starts containerd, imports the image, and starts the kubelet. The kubelet registers the Node a moment later.
// Start returns an error outside of a room.
func Start(ctx context.Context, o Options) (*Node, error) {
	if os.Getenv(room.EnvInside) == "" {
		return nil, errors.New("start node: this is no room: run the command by go run ./lab/room COMMAND")
	}
	if err := run(ctx, "ip", "address", "add", o.IP+"/32", "dev", "lo"); err != nil {
		return nil, fmt.Errorf("start node: %w", err)
	}
	for name, path := range map[string]string{"containerd.toml": "/etc/containerd/config.toml",
		"network.json": "/etc/cni/net.d/10-lab.conflist", "kubelet.yaml": "/etc/kubernetes/kubelet.yaml"} {
		text, err := configs.ReadFile(name)
		if err != nil {
			return nil, err
		}
		text = []byte(strings.NewReplacer("$PODS", o.Pods).Replace(string(text)))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, text, 0o644)); err != nil {
			return nil, fmt.Errorf("start node: %w", err)
		}
	}
	n := &Node{}
	var err error
	if n.containerd, err = proc.Start(proc.Spec{Name: "containerd", Path: "containerd", LogDir: o.Logs}); err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answers := func(ctx context.Context) error { return run(ctx, "ctr", "version") }
	if err := n.containerd.Until(waiting, answers); err != nil {
		return nil, err
	}
	if err := importBox(ctx); err != nil {
		return nil, err
	}
	n.kubelet, err = proc.Start(proc.Spec{Name: "kubelet", Path: filepath.Join(o.Bin, "kubelet"), LogDir: o.Logs,
		Args: []string{"--config=/etc/kubernetes/kubelet.yaml", "--kubeconfig=" + o.Kubeconfig,
			"--hostname-override=" + o.Name, "--node-ip=" + o.IP}})
	return n, err
}

// Freeze stops the kubelet until Thaw is called. For the cluster this is like a crash of the node, but the containers
// continue to run.
func (n *Node) Freeze() error { return n.kubelet.Signal(syscall.SIGSTOP) }

// Thaw lets the kubelet continue after Freeze.
func (n *Node) Thaw() error { return n.kubelet.Signal(syscall.SIGCONT) }

// Running returns the number of containers that run on the node. It does not count the first process (pause) of each
// pod.
func Running(ctx context.Context) (int, error) {
	out, err := exec.CommandContext(ctx, "ctr", "-n", "k8s.io", "tasks", "list", "-q").Output()
	if err != nil {
		return 0, fmt.Errorf("list containers: %w", err)
	}
	sandboxes, err := exec.CommandContext(ctx, "ctr", "-n", "k8s.io", "containers", "list", "-q",
		`labels."io.cri-containerd.kind"==sandbox`).Output()
	if err != nil {
		return 0, fmt.Errorf("list pods: %w", err)
	}
	running := 0
	for task := range strings.FieldsSeq(string(out)) {
		if !strings.Contains(string(sandboxes), task) {
			running++
		}
	}
	return running, nil
}

func run(ctx context.Context, name string, args ...string) error {
	if out, err := exec.CommandContext(ctx, name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return nil
}
