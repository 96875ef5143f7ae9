package dev

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// lockDir locks the directory until unlock is called, because two runs of dev must not write to the same database. The
// kernel releases the lock when the process ends.
func lockDir(dir string) (unlock func(), err error) {
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) //nolint:gosec // a descriptor fits
	if errors.Is(err, syscall.EWOULDBLOCK) {
		holder, _ := os.ReadFile(file.Name())
		_ = file.Close()
		return nil, fmt.Errorf("another liqo-autoscaler dev runs in %s (process %s): stop it, or use another --dir, with "+
			"other addresses", dir, strings.TrimSpace(string(holder)))
	}
	if err == nil {
		err = errors.Join(file.Truncate(0), func() error {
			_, err := file.WriteString(strconv.Itoa(os.Getpid()) + "\n")
			return err
		}())
	}
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return func() { _ = file.Close() }, nil
}
