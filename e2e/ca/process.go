package ca

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/proc"
)

// Options configures a process of the loop.
type Options struct {
	Binary     string // path from Build
	Kubeconfig string // kubeconfig of the consumer cluster
	// CloudConfig is the path of the file with the address of the externalgrpc server, see `liqo-autoscaler config
	// cloud-config`.
	CloudConfig string
	Dir         string // folder of the log, cluster-autoscaler.log
	// Flags are further flags. They override flags in DefaultFlags.
	Flags []string
}

// DefaultFlags returns the flags with which the suites start Cluster Autoscaler: mostly CA's defaults, but with
// shorter times.
func DefaultFlags() []string {
	return []string{
		"--leader-elect=false",
		"--scan-interval=1s",
		"--frequent-loops-enabled=true",
		"--scale-down-unneeded-time=5s",
		"--scale-down-unready-time=2m",
		"--scale-down-delay-after-add=5s",
		"--scale-down-delay-after-delete=1s",
		"--scale-down-delay-after-failure=5s",
		"--node-delete-delay-after-taint=1s",
		"--unremovable-node-recheck-timeout=5s",
		"--max-node-provision-time=5m",
		"--initial-node-group-backoff-duration=10s",
		"--max-node-group-backoff-duration=30s",
		"--skip-nodes-with-local-storage=false",
		"--skip-nodes-with-system-pods=false",
		"--skip-nodes-with-custom-controller-pods=false",
		"--write-status-configmap=true",
		"--v=4",
	}
}

// Build compiles the loop into dir and returns the binary's path. With an empty build cache this takes about 6
// minutes on 2 cores. Afterwards it takes seconds.
func Build(ctx context.Context, dir string) (string, error) {
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		return "", errors.New("build cluster-autoscaler: no source path in this binary")
	}
	out := filepath.Join(dir, "cluster-autoscaler")
	cmd := exec.CommandContext(ctx, "go", "build", "-tags", "externalgrpc", "-o", out, "./cmd")
	cmd.Dir = filepath.Dir(file)
	if said, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build cluster-autoscaler: %w: %s", err, said)
	}
	return out, nil
}

// Start starts the loop and returns when the health check of the loop answers. The caller must stop the process.
func Start(ctx context.Context, o Options) (*proc.Process, error) {
	ports, err := proc.FreePorts(1)
	if err != nil {
		return nil, err
	}
	args := append([]string{"--cloud-provider=externalgrpc", "--cloud-config=" + o.CloudConfig, "--kubeconfig=" +
		o.Kubeconfig,
		"--address=" + ports[0]}, append(DefaultFlags(), o.Flags...)...)
	p, err := proc.Start(proc.Spec{Name: "cluster-autoscaler", Path: o.Binary, Args: args, LogDir: o.Dir})
	if err != nil {
		return nil, err
	}
	err = p.Until(ctx, func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+ports[0]+"/health-check", nil)
		if err != nil {
			return err
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("health check: %s", res.Status)
		}
		return nil
	})
	if err != nil {
		p.Kill()
		return nil, err
	}
	return p, nil
}
