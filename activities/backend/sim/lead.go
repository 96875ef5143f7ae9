package sim

import (
	"context"
	"log/slog"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/lead"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// leadEvery is how often a process that does not lead tries to.
const leadEvery = 200 * time.Millisecond

// Lead calls work while this process leads the world's hub, again and again until ctx ends: one process at a time
// leads. The kernel ends the lead of a process that dies. Lead stands for a Lease in a real cluster.
func (w *World) Lead(ctx context.Context, work func(ctx context.Context)) {
	for ctx.Err() == nil {
		f, err := flock(ctx, w.path+".lead", leadEvery)
		if err != nil {
			if ctx.Err() == nil {
				slog.WarnContext(ctx, "the lead of the simulated world cannot be taken; trying again", "error", err)
			}
			wait.For(ctx, leadEvery)
			continue
		}
		work(ctx)
		_ = f.Close() // which unlocks
		wait.For(ctx, lead.Rest)
	}
}

// UID tells the world from others, as the UID of the namespace kube-system tells clusters.
func (w *World) UID() (string, error) {
	s, err := w.Snapshot()
	if err != nil {
		return "", err
	}
	return s.World, nil
}
