package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// lock is the machine's lab lock: flock(2) on lab.lock in os.TempDir, the same that `flock /tmp/lab.lock` takes, and on
// lab-<slot>.lock for other slots. The file holds the root of the lab that runs, so that the next one can clear it away.
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
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return nil, fmt.Errorf("take lab lock: %w", err)
	}
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for waited := false; ; waited = true {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return &lock{file: f}, nil
		}
		if err != syscall.EWOULDBLOCK && err != syscall.EINTR {
			f.Close()
			return nil, fmt.Errorf("take lab lock %s: %w", path, err)
		}
		if !waited {
			log("lab: waiting for %s: another lab runs on this machine (LAB_SLOT=1 starts one beside it)", path)
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("take lab lock %s, held by another lab: %w", path, ctx.Err())
		case <-tick.C:
		}
	}
}

// leftovers are the roots of labs that were not brought down.
func (l *lock) leftovers() []string {
	b := make([]byte, 4096)
	n, _ := l.file.ReadAt(b, 0)
	return strings.Fields(string(b[:n]))
}

// note writes down the root of the lab that starts; "" that there is none.
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
	_ = l.file.Close() // frees the lock
}
