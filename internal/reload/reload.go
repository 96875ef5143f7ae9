// Package reload returns the parsed value of files that may change while the process runs, such as a mounted
// ConfigMap, an edited list or a renewed certificate.
//
// It uses no file watches. It reads the files at each call of Get, and parses them when their content has changed. It
// compares contents and not times, because the kubelet swaps a symbolic link to update a mounted ConfigMap. While the
// files are invalid, Get returns the last valid value together with the error.
package reload

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/logonce"
)

// maxBytes bounds the size of one file.
const maxBytes = 4 << 20

// Files holds a value that is parsed from one or more files. It is safe for concurrent use.
type Files[T any] struct {
	paths []string
	parse func(contents [][]byte) (T, error)

	mu      sync.Mutex
	value   T
	version string // the version of value
	read    string // the version that was read last, valid or not; "" after a failed read
	err     error
	logged  logonce.LastError
}

// Open reads the files for the first time, and returns an error if they are not valid. It passes their contents to
// parse in the order of the paths.
func Open[T any](parse func(contents [][]byte) (T, error), paths ...string) (*Files[T], error) {
	f := &Files[T]{paths: paths, parse: parse}
	if _, _, err := f.Get(); err != nil {
		return nil, err
	}
	return f, nil
}

// Get reads the files again. It returns the last valid value, the version of this value (a hash of the contents), and
// the error of the present contents. value and version are valid even if err is not nil.
func (f *Files[T]) Get() (value T, version string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.reread(); f.err != nil {
		f.reread() // another process may have replaced the files between two reads
	}
	return f.value, f.version, f.err
}

// reread reads the files once, and parses them when they have changed.
func (f *Files[T]) reread() {
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

// Latest reads the files again and returns the last valid value. It is for callers that cannot return an error: it
// logs each new error once, with the given message.
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
