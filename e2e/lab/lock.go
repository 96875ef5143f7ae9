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

// lock is the machine's lab lock: flock(2) on lab.lock in os.TempDir, or on lab-<slot>.lock if the slot is not 0. The
// keeper holds it too. Therefore the lock becomes free only when the lab has ended, even if the owner ends earlier.
// The file contains the root of the running lab. If the keeper is killed too, the next lab can remove this root.
type lock struct{ file *os.File }

func suffix(slot int) string {
	if slot == 0 {
		return ""
	}
	return fmt.Sprintf("-%d", slot)
}

// acquire waits until it has taken the lock or ctx ends.
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

// leftovers returns the roots in the file. They belong to labs that did not end properly.
func (l *lock) leftovers() []string {
	b := make([]byte, 4096)
	n, _ := l.file.ReadAt(b, 0)
	return strings.Fields(string(b[:n]))
}

// note writes the root of a lab into the file. It is called with "" when the lab has ended.
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
	l.file.Close() // releases the lock
}

// flock opens the file and takes its lock. It waits until the lock is free or ctx ends. The lock is released when the
// caller closes the file.
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
		if tries == 2 { // not at the first try: a process that was just killed releases the lock in a moment
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
