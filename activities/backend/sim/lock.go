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

// lock takes the world's lock, which is held by one World in one process at a time; the kernel gives it back when its
// holder dies. It lies beside the world file because that one is replaced with each change.
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
		_ = f.Close() // which unlocks
		w.turn.Release(1)
	}, nil
}

// flock locks a file, which its holder's death or Close unlocks. It tries again and again until ctx ends.
func flock(ctx context.Context, path string, every time.Duration) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		// Not a blocking flock: its holder may be stopped, and ctx is to be obeyed.
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

// contextError is why the context ended, its cause included.
func contextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
