package sim

import (
	"context"
	"log/slog"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/filelock"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/leader"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// leadEvery is the interval at which a process that is not the leader tries to become the leader.
const leadEvery = 200 * time.Millisecond

// Lead waits until this process is the leader of the world's hub, and calls the function work. It repeats this until
// ctx ends. Only one process at a time is the leader. When the leader's process ends, the kernel releases its lock.
// Lead simulates a Lease of a real cluster.
func (w *World) Lead(ctx context.Context, work func(ctx context.Context)) {
	for ctx.Err() == nil {
		f, err := filelock.Lock(ctx, w.path+".lead", leadEvery)
		if err != nil {
			if ctx.Err() == nil {
				slog.WarnContext(ctx, "the lead of the simulated world cannot be taken; trying again", "error", err)
			}
			wait.For(ctx, leadEvery)
			continue
		}
		work(ctx)
		_ = f.Close() // releases the lock
		wait.For(ctx, leader.Rest)
	}
}

// UID returns the id of the world, which simulates the UID of a cluster's namespace kube-system.
func (w *World) UID() (string, error) {
	s, err := w.Snapshot()
	if err != nil {
		return "", err
	}
	return s.World, nil
}
