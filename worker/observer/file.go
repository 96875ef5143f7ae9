package observer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/filelock"
)

// File implements Memory and Shared with a file on this machine, for a hub whose processes all run here. Its value is
// the file's path.
type File string

// Load implements Memory.
func (f File) Load(context.Context) ([]byte, time.Duration, error) {
	info, err := os.Stat(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, -1, nil
	}
	document, err := os.ReadFile(string(f))
	if err != nil {
		return nil, 0, fmt.Errorf("read the observer's saved state: %w", err)
	}
	return document, max(time.Since(info.ModTime()), 0), nil
}

// Read implements Memory.
func (f File) Read(ctx context.Context) ([]byte, error) {
	document, _, err := f.Load(ctx)
	return document, err
}

// Save implements Memory. It replaces the file atomically.
func (f File) Save(_ context.Context, document []byte) error {
	temporary := string(f) + ".new"
	if err := os.WriteFile(temporary, document, 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, string(f))
}

// lockEvery is the interval at which Change tries to lock the file.
const lockEvery = 5 * time.Millisecond

// Change implements Shared. A lock on a second file excludes other processes.
func (f File) Change(ctx context.Context, edit func([]byte) []byte) error {
	lock, err := filelock.Lock(ctx, string(f)+".lock", lockEvery)
	if err != nil {
		return err
	}
	defer lock.Close()
	document, err := f.Read(ctx)
	if err != nil {
		return err
	}
	return f.Save(ctx, edit(document))
}
