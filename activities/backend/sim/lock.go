package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/filelock"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// lock takes the world's lock. Only one World, in one process, can have this lock at a time. When that process ends,
// the kernel releases the lock. The lock file is separate from the world file, because the world file is replaced.
func (w *World) lock(ctx context.Context) (unlock func(), err error) {
	if w.turn.Acquire(ctx, 1) != nil {
		return nil, fmt.Errorf("lock world %s: %w", w.path, wait.Err(ctx))
	}
	f, err := filelock.Lock(ctx, w.path+".lock", 2*time.Millisecond)
	if err != nil {
		w.turn.Release(1)
		return nil, fmt.Errorf("lock world %s: %w", w.path, err)
	}
	return func() {
		_ = f.Close() // releases the lock
		w.turn.Release(1)
	}, nil
}
