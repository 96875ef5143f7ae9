package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// lock is the machine's lab lock: flock(2) on lab.lock in os.TempDir, and on lab-<slot>.lock for other slots. The
// keeper holds it too, so the lock becomes free when the lab has ended, not when its owner has ended. The file contains
// the root of the running lab, so that the next lab can remove this root when the keeper was killed as well.
type lock struct{ file *os.File }

func suffix(slot int) string {
	if slot == 0 {
		return ""
	}
	return fmt.Sprintf("-%d", slot)
}

// acquire waits until the lock is free or the context ends.
func acquire(ctx context.Context, slot int, log func(string, ...any)) (*lock, error) {
	path := filepath.Join(os.TempDir(), "lab"+suffix(slot)+".lock")
	f, err := flock(ctx, path, func() {
		log("lab: waiting for %s: another lab runs on this machine (%s=1 starts a second lab)", path, EnvSlot)
	})
	if err != nil {
		return nil, err
	}
	return &lock{file: f}, nil
}

// leftovers returns the roots of labs that did not end properly.
func (l *lock) leftovers() []string {
	b := make([]byte, 4096)
	n, _ := l.file.ReadAt(b, 0)
	return strings.Fields(string(b[:n]))
}

// note writes the root of the starting lab into the file. It writes "" when the lab has ended.
func (l *lock) note(root string) error {
	if err := l.file.Truncate(0); err != nil {
		return fmt.Errorf("note lab root: %w", err)
	}
	if _, err := l.file.WriteAt([]byte(root+"\n"), 0); err != nil {
		return fmt.Errorf("note lab root: %w", err)
	}
	return nil
}

func (l *lock) release() {
	_ = l.note("")
	l.file.Close() // frees the lock
}

// flock takes a file's lock. It waits at most until the context ends. Closing the file frees the lock.
func flock(ctx context.Context, path string, waiting func()) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return nil, fmt.Errorf("take lock: %w", err)
	}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for tries := 1; ; tries++ {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			f.Close()
			return nil, fmt.Errorf("take lock %s: %w", path, err)
		}
		if tries == 2 { // a process that was just killed frees the lock in a moment
			waiting()
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("take lock %s, held by another process: %w", path, ctx.Err())
		case <-tick.C:
		}
	}
}
