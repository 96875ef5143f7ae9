package keep

import (
	"context"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/proc"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// container is a container of Liqo itself. In the lab, it has no pod and runs as a process.
type container struct {
	spec    proc.Spec
	process *proc.Process
}

// longestPause is the maximum pause before the lab restarts a process that ends repeatedly, for example because the
// API server is missing. Kubernetes also doubles the pause after each restart, up to five minutes.
const longestPause = 8 * time.Second

// startContainer starts one of Liqo's processes. The function `again` restarts it when it ends.
func (c *cluster) startContainer(name, path string, args []string) (*proc.Process, error) {
	spec := proc.Spec{Name: name, Path: path, Args: args, Env: c.env()}
	p, err := c.startSpec(spec)
	if err == nil {
		c.mu.Lock()
		c.containers = append(c.containers, container{spec, p})
		c.mu.Unlock()
	}
	return p, err
}

// again restarts a process whenever the process has ended, until ctx ends. Liqo's IPAM and controllers exit when they
// cannot reach the API server for too long, and Kubernetes would restart them.
func (c *cluster) again(ctx context.Context, of container, log func(string, ...any)) {
	pause, began := restartPause, time.Now()
	for restarts := 1; ; restarts++ {
		select {
		case <-ctx.Done():
			return
		case <-of.process.Done():
		}
		if time.Since(began) > longestPause {
			pause = restartPause
		}
		if !wait.For(ctx, pause) {
			return
		}
		pause, began = min(2*pause, longestPause), time.Now()
		p, err := c.startSpec(of.spec)
		if err != nil {
			log("start %s-%s again: %v", c.name, of.spec.Name, err)
			continue
		}
		of.process = p
		log("%s started, pid %d, restarts %d", p.Name, p.Pid(), restarts)
	}
}
