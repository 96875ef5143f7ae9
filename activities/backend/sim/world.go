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

// defaultDelays are those of a new world: quick enough for a demo, slow enough to see each phase.
var defaultDelays = Delays{
	Peer: 300 * time.Millisecond, Join: 500 * time.Millisecond, Leave: 200 * time.Millisecond,
	Unpeer:   200 * time.Millisecond,
	Register: 2 * time.Second,
}

// World is a handle on a world file. It may be used by many goroutines, and many may be open on one file.
type World struct {
	path string
	turn *semaphore.Weighted // this handle's callers queue here, and only one of them tries for the lock

	mu     sync.Mutex
	state  *State // what the file says, as far as it is read
	lent   bool   // a Snapshot has it, so it is copied before it is changed
	file   *os.File
	opened os.FileInfo
	read   int64 // how far the file is read
	first  int64 // the size of its first line

	version int64            // rises with all that is read
	touched map[string]int64 // the version that last changed an object
	begun   int64            // the version at which the file was read from its beginning
	woken   chan struct{}    // closed at the next look that sees something new; nil while nobody waits
	failed  error            // of the last look

	compactBeyond int64
	writeAt       func(f *os.File, at int64, content []byte) error // tests die here
}

// Open opens the world at path, and makes an empty one with default delays when there is none; its directory is made
// too.
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

// Intercept has around called in the place of each later write of this handle, with the line to be written, which write
// writes. It is for tests in which a process ends there. Around must not use the World.
func (w *World) Intercept(around func(line []byte, write func() error) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	inner := w.writeAt
	w.writeAt = func(f *os.File, at int64, content []byte) error {
		return around(content, func() error { return inner(f, at, content) })
	}
}

// Path is the world file's path.
func (w *World) Path() string { return w.path }

// Snapshot is the world now. The caller must not change it.
func (w *World) Snapshot() (*State, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.refresh(); err != nil {
		return nil, err
	}
	w.lent = true
	return w.state, nil
}

// view shows the world now to look, which must be quick, change nothing and keep nothing. It returns the world's
// version.
func (w *World) view(look func(*State)) (int64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.refresh(); err != nil {
		return 0, err
	}
	look(w.state)
	return w.version, nil
}

// own is the state for change: a copy when a Snapshot has it. The caller holds mu.
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

// Edit changes the world in one step that no other sees half done: all of what change did is written, or, when change
// returns an error, nothing. It blocks for as long as others change the world. The change must be quick, must not use
// the World and must keep nothing of the State.
func (w *World) Edit(ctx context.Context, change func(*State) error) error {
	_, err := w.edit(ctx, allKeys, change)
	return err
}

// edit is Edit of a change that touches no objects but those of the keys. It returns the version as change left it.
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

// newUID is 16 hex digits, never the same twice.
func newUID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}
