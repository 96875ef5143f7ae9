// Package reload follows files that change while the process runs, such as a mounted ConfigMap, an edited list or a
// renewed certificate.
//
// There are no watches that can break: the files are read whenever their value is asked for, and parsed when their
// content changed. Content decides rather than times, because a mounted ConfigMap is a symbolic link that is swapped.
// A version with an error leaves the last good value in force, and the error is returned until the files are good
// again.
package reload

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/told"
)

const maxBytes = 4 << 20

// Files is a value made of one or more files. Safe for concurrent use.
type Files[T any] struct {
	paths []string
	parse func(contents [][]byte) (T, error)

	mu      sync.Mutex
	value   T
	version string // of the value
	read    string // the version read last, good or not; "" when the files could not be read
	err     error
	logged  told.Once
}

// Open reads the files for the first time; they must be good. parse gets their contents in the order of the paths.
func Open[T any](parse func(contents [][]byte) (T, error), paths ...string) (*Files[T], error) {
	f := &Files[T]{paths: paths, parse: parse}
	if _, _, err := f.Get(); err != nil {
		return nil, err
	}
	return f, nil
}

// Get reads the files again. It returns the last good value, its version, which is a hash of the contents, and what is
// wrong with the files now.
func (f *Files[T]) Get() (value T, version string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.look(); f.err != nil {
		f.look() // they may have been exchanged between the reading of one and of the next
	}
	return f.value, f.version, f.err
}

// look reads the files once, and parses them when they have changed.
func (f *Files[T]) look() {
	contents, read, err := readAll(f.paths)
	switch {
	case err != nil:
		f.read, f.err = "", err
	case read != f.read:
		f.read = read
		var value T
		if value, f.err = f.parse(contents); f.err == nil {
			f.value, f.version = value, read
		}
	}
}

// Latest is Get for callers that cannot return an error: each new one is logged once.
func (f *Files[T]) Latest(log *slog.Logger, message string) T {
	value, _, err := f.Get()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.logged.IsNew(err) {
		log.Error(message, "error", err)
	}
	return value
}

func readAll(paths []string) (contents [][]byte, version string, err error) {
	sum := sha256.New()
	for _, path := range paths {
		content, err := read(path)
		if err != nil {
			return nil, "", err
		}
		contents = append(contents, content)
		fmt.Fprintf(sum, "%d:%s", len(content), content)
	}
	return contents, hex.EncodeToString(sum.Sum(nil)), nil
}

func read(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxBytes+1))
	if err == nil && len(content) > maxBytes {
		err = fmt.Errorf("%s is larger than 4 MiB: shorten it", path)
	}
	return content, err
}
