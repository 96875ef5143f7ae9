package sim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// headSize is enough for {"world":"<16 hex>","revision":<19 digits>, which tells one content of the file from any other.
const headSize = 64

// head reads the beginning of the file: cheap, and different whenever the content is.
func (w *World) head() (string, error) {
	f, err := os.Open(w.path)
	if err != nil {
		return "", fmt.Errorf("read world: %w", err)
	}
	defer func() { _ = f.Close() }()
	buf := make([]byte, headSize)
	n, err := io.ReadFull(f, buf)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", fmt.Errorf("read world %s: %w", w.path, err)
	}
	return headOf(buf[:n]), nil
}

// headOf cuts the head off after the revision.
func headOf(content []byte) string {
	head := content[:min(len(content), headSize)]
	if i := bytes.IndexByte(head, ','); i >= 0 {
		if j := bytes.IndexByte(head[i+1:], ','); j >= 0 {
			head = head[:i+1+j]
		}
	}
	return string(head)
}

// load reads the file; a missing one is os.ErrNotExist.
func (w *World) load() (*State, []byte, error) {
	content, err := os.ReadFile(w.path)
	if err != nil {
		return nil, nil, fmt.Errorf("read world: %w", err)
	}
	s := &State{}
	if err := json.Unmarshal(content, s); err != nil {
		return nil, nil, fmt.Errorf("read world %s: not a simulated world, or one of another version: %w", w.path, err)
	}
	s.fill()
	return s, content, nil
}

// store replaces the file in one step: a reader sees the old content or the new, and a writer that is killed leaves the
// old and at most a temporary file, which the next writer overwrites. The caller holds the lock. There is no fsync:
// the world outlives its processes, not the machine.
func (w *World) store(content []byte) error {
	temporary := w.path + ".tmp"
	if err := os.WriteFile(temporary, content, 0o600); err != nil {
		return fmt.Errorf("write world: %w", err)
	}
	if w.beforeRename != nil {
		w.beforeRename()
	}
	if err := os.Rename(temporary, w.path); err != nil {
		return fmt.Errorf("write world: %w", err)
	}
	return nil
}

func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
