package sim

import (
	"context"
	"os"
	"syscall"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// Times of Lead: how often it tries, and how long a process whose work has returned by itself leaves the lead to
// others.
const (
	leadEvery = 200 * time.Millisecond
	leadRest  = time.Minute
)

// Lead calls work while this process leads the world's hub, again and again until ctx ends: one process at a time does.
// The kernel ends the lead of a process that dies. It stands for a Lease in a real cluster.
func (w *World) Lead(ctx context.Context, work func(ctx context.Context)) {
	for ctx.Err() == nil {
		f, err := os.OpenFile(w.path+".lead", os.O_CREATE|os.O_RDWR, 0o600)
		if err == nil {
			err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		}
		if err != nil {
			if f != nil {
				_ = f.Close()
			}
			wait.For(ctx, leadEvery)
			continue
		}
		work(ctx)
		_ = f.Close() // which unlocks
		wait.For(ctx, leadRest)
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
