// Package filelock locks files, so that several processes of one machine can share data.
package filelock

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// Lock locks the file, and creates the file if it does not exist. It blocks until it has the lock or ctx ends, and
// tries again after the time in the parameter every. The lock is released when the returned file is closed or the
// process ends.
func Lock(ctx context.Context, path string, every time.Duration) (*os.File, error) {
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
			err = wait.Err(ctx)
		default:
			continue
		}
		_ = f.Close()
		return nil, err
	}
}
