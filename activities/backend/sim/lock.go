package sim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// lock takes the world's lock. Only one World, in one process, can have this lock at a time. When that process ends,
// the kernel releases the lock. The lock file is separate from the world file, because the world file is replaced.
func (w *World) lock(ctx context.Context) (unlock func(), err error) {
	if w.turn.Acquire(ctx, 1) != nil {
		return nil, fmt.Errorf("lock world %s: %w", w.path, contextError(ctx))
	}
	f, err := flock(ctx, w.path+".lock", 2*time.Millisecond)
	if err != nil {
		w.turn.Release(1)
		return nil, fmt.Errorf("lock world %s: %w", w.path, err)
	}
	return func() {
		_ = f.Close() // releases the lock
		w.turn.Release(1)
	}, nil
}

// flock locks a file and retries until ctx ends. The lock is released when the file is closed or the process ends.
func flock(ctx context.Context, path string, every time.Duration) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		// This call does not block: the process that has the lock may be suspended, but the wait must end when ctx
		// ends.
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return f, nil
		case !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR):
		case !wait.For(ctx, every):
			err = contextError(ctx)
		default:
			continue
		}
		_ = f.Close()
		return nil, err
	}
}

// contextError returns the error of the ended context together with its cause.
func contextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
