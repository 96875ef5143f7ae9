package sim

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// defaultDelays contains the delays of a new world. They are short enough for a demo, and long enough to see each
// phase.
var defaultDelays = Delays{
	Peer: 300 * time.Millisecond, Join: 500 * time.Millisecond, Leave: 200 * time.Millisecond,
	Unpeer:   200 * time.Millisecond,
	Register: 2 * time.Second,
}

// World is a handle on a world file. It is safe for concurrent use. Several handles may be open on one file.
type World struct {
	path string
	turn *semaphore.Weighted // only one caller of this handle at a time tries to lock the file

	mu     sync.Mutex
	state  *State // the content of the file, as far as this handle has read it
	lent   bool   // a Snapshot refers to state, so own copies it before a change
	file   *os.File
	opened os.FileInfo
	read   int64 // number of bytes read
	first  int64 // size of the first line

	version  int64            // increases with each line that is read
	touched  map[string]int64 // the version that last changed an object
	readFrom int64            // the version at which this handle read the file from its beginning
	woken    chan struct{}    // closed by the next read with a change; nil while no call waits
	failed   error            // the error of the last read

	compactBeyond int64
	writeAt       func(f *os.File, at int64, content []byte) error // tests interrupt the process in this call
}

// Open opens the world at path. If the file is missing, Open makes its directory and an empty world with default
// delays.
func Open(path string) (*World, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("open world: %w", err)
	}
	w := &World{
		path: path, turn: semaphore.NewWeighted(1), touched: map[string]int64{},
		compactBeyond: compactBeyond,
		writeAt: func(f *os.File, at int64, content []byte) error {
			_, err := f.WriteAt(content, at)
			return err
		},
	}
	// The first change makes the file.
	if err := w.Edit(context.Background(), func(*State) error { return nil }); err != nil {
		return nil, err
	}
	return w, nil
}

// Intercept makes this handle call the function around instead of writing a line. This function can write the line by
// calling its parameter write. It must not use the World. Tests use Intercept to end a process before or after a
// write.
func (w *World) Intercept(around func(line []byte, write func() error) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	inner := w.writeAt
	w.writeAt = func(f *os.File, at int64, content []byte) error {
		return around(content, func() error { return inner(f, at, content) })
	}
}

// Path returns the path of the world file.
func (w *World) Path() string { return w.path }

// Snapshot returns the present world. The caller must not change it.
func (w *World) Snapshot() (*State, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.refresh(); err != nil {
		return nil, err
	}
	w.lent = true
	return w.state, nil
}

// view calls the function read with the present world and returns the world's version. The function must be quick,
// must not change the world and must not keep a reference to it.
func (w *World) view(read func(*State)) (int64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.refresh(); err != nil {
		return 0, err
	}
	read(w.state)
	return w.version, nil
}

// own returns the state for a change. It copies the state first if a Snapshot refers to it. The caller must have locked
// mu.
func (w *World) own() *State {
	if w.lent {
		s := *w.state
		for _, k := range kinds {
			k.fork(&s)
		}
		w.state, w.lent = &s, false
	}
	return w.state
}

// Edit changes the world with the function change, in one atomic step: it writes all changes, or none if the function
// returns an error. It blocks while other processes change the world. The function must be quick, must not use the
// World and must not keep a reference to the State.
func (w *World) Edit(ctx context.Context, change func(*State) error) error {
	_, err := w.edit(ctx, allKeys, change)
	return err
}

// edit does the same as Edit, for a change that touches only the objects with the keys. It returns the version after
// the change.
func (w *World) edit(ctx context.Context, keys func(*State) []string,
	change func(*State) error) (version int64, err error) {
	unlock, err := w.lock(ctx)
	if err != nil {
		return 0, err
	}
	defer unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	err = w.refresh()
	if isMissing(err) {
		err = w.create()
	}
	if err != nil {
		return 0, err
	}
	set, err := w.own().differences(keys, change)
	if err == nil && len(set) > 0 {
		err = w.write(set)
	}
	return w.version, err
}

func (w *World) create() error {
	s := &State{World: newUID(), Revision: 1, Delays: defaultDelays}
	s.fill()
	return w.replace(s)
}

// newUID returns 16 random hex digits.
func newUID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // Read never fails
	return hex.EncodeToString(b[:])
}
