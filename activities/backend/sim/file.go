package sim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// record is one line of the world file. It describes one change. Only the first line has World, and the first line
// sets all objects.
type record struct {
	World    string                     `json:"world,omitempty"` // a random id, made with the world
	Revision int64                      `json:"revision"`        // rises by one with each change
	Set      map[string]json.RawMessage `json:"set"`             // the value null removes the object
}

// A world file is rewritten when it is larger than four times its first line, plus compactBeyond bytes.
const compactBeyond = 4 << 20

// refresh reads the changes that any process has written since the last read. It returns os.ErrNotExist for a missing
// file. The caller must have locked mu.
func (w *World) refresh() error {
	info, err := os.Stat(w.path)
	if err != nil {
		return fmt.Errorf("read world: %w", err)
	}
	if w.file == nil || !os.SameFile(info, w.opened) {
		return w.reopen()
	}
	return w.readOn(info.Size())
}

// reopen reads the file from its beginning. It keeps the file open, so that no other file can get the inode. refresh
// compares inodes to notice that the file was replaced.
func (w *World) reopen() error {
	if w.file != nil {
		_ = w.file.Close()
		w.file = nil
	}
	f, err := os.OpenFile(w.path, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("read world: %w", err)
	}
	w.file, w.read, w.first = f, 0, 0
	w.state, w.lent = &State{}, false
	w.state.fill()
	clear(w.touched)
	w.version++
	w.readFrom = w.version
	if w.opened, err = f.Stat(); err == nil {
		err = w.readOn(w.opened.Size())
	}
	if err == nil && w.state.World == "" {
		err = w.unknown(errors.New("its first line names no world"))
	}
	if err != nil {
		_ = f.Close()
		w.file = nil
	}
	return err
}

// readOn applies the lines up to the file's size. It ignores a last line without a line end: the line is being written,
// or its writer was killed.
func (w *World) readOn(size int64) error {
	if size <= w.read {
		return nil
	}
	content := make([]byte, size-w.read)
	n, err := w.file.ReadAt(content, w.read)
	if n == 0 && err != nil {
		return fmt.Errorf("read world %s: %w", w.path, err)
	}
	for content = content[:n]; ; {
		line, rest, whole := bytes.Cut(content, []byte("\n"))
		if !whole {
			return nil
		}
		if err := w.apply(line); err != nil {
			return w.unknown(err)
		}
		w.read += int64(len(line)) + 1
		if w.first == 0 {
			w.first = w.read
		}
		content = rest
	}
}

func (w *World) unknown(err error) error {
	return fmt.Errorf("read world %s: not a simulated world, or one of another version, then remove it: %w", w.path, err)
}

func (w *World) apply(line []byte) error {
	var r record
	if err := json.Unmarshal(line, &r); err != nil {
		return err
	}
	s := w.own()
	w.version++
	for key, raw := range r.Set {
		k, rest, ok := kindAndKey(key)
		if !ok {
			return fmt.Errorf("%s: there is no such kind of object", key)
		}
		var object any
		var err error
		if string(raw) != "null" {
			if object, err = k.decode(raw); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		}
		k.set(s, rest, object)
		w.touched[key] = w.version
	}
	if r.World != "" {
		s.World = r.World
	}
	s.Revision = r.Revision
	return nil
}

// write adds a line to the file. It overwrites an incomplete line that a killed process has left. From time to time
// it rewrites the whole file. The caller must have taken the file lock and locked mu. It does not call fsync: the
// world survives the end of its processes, but not a crash of the machine.
func (w *World) write(set map[string]json.RawMessage) error {
	line, err := json.Marshal(record{Revision: w.state.Revision + 1, Set: set})
	if err == nil {
		err = w.file.Truncate(w.read)
	}
	if err == nil {
		err = w.writeAt(w.file, w.read, append(line, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write world: %w", err)
	}
	if err := w.refresh(); err != nil || w.read < w.compactBeyond+4*w.first {
		return err
	}
	return w.replace(w.state)
}

// replace rewrites the file in one step: a reader sees either the old file or the new one. A process that is killed
// during this call leaves the old file and perhaps a temporary file. The next replace overwrites the temporary file.
// The caller must have taken the file lock and locked mu.
func (w *World) replace(s *State) error {
	r := record{World: s.World, Revision: s.Revision, Set: map[string]json.RawMessage{}}
	for _, key := range allKeys(s) {
		raw, err := json.Marshal(s.object(key))
		if err != nil {
			return fmt.Errorf("write world: %s: %w", key, err)
		}
		r.Set[key] = raw
	}
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write world: %w", err)
	}
	line = append(line, '\n')
	f, err := os.OpenFile(w.path+".tmp", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write world: %w", err)
	}
	if err := errors.Join(w.writeAt(f, 0, line), f.Close()); err != nil {
		return fmt.Errorf("write world: %w", err)
	}
	if err := os.Rename(f.Name(), w.path); err != nil {
		return fmt.Errorf("write world: %w", err)
	}
	return w.refresh()
}

func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
