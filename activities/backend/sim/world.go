package sim

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// defaultDelays are those of a new world: quick enough for a demo, slow enough to see each phase.
var defaultDelays = Delays{
	Peer: 300 * time.Millisecond, Join: 500 * time.Millisecond, Leave: 200 * time.Millisecond, Unpeer: 200 * time.Millisecond,
	Register: 2 * time.Second,
}

// World is a handle on a world file. It may be used by many goroutines, and many may be open on one file.
type World struct {
	path string
	turn chan struct{} // holds one token: this handle's callers queue here, and only one of them tries for the lock

	last        *State // what this handle wrote last, and its content; who holds the lock may use them
	lastContent []byte

	mu     sync.Mutex
	cached *State // never changed once it is here
	key    string // the head of the file that cached was read from

	beforeRename func() // tests die here
}

// Open opens the world at path, and makes an empty one with default delays when there is none; its directory is made too.
func Open(path string) (*World, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("open world: %w", err)
	}
	w := &World{path: path, turn: make(chan struct{}, 1)}
	w.turn <- struct{}{}
	// The first change makes the file.
	if err := w.Edit(context.Background(), func(*State) error { return nil }); err != nil {
		return nil, err
	}
	return w, nil
}

// Path is the world file's path.
func (w *World) Path() string { return w.path }

// Snapshot is the world now. The caller must not change it.
func (w *World) Snapshot() (*State, error) {
	head, err := w.head()
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cached != nil && w.key == head {
		return w.cached, nil
	}
	s, content, err := w.load()
	if err != nil {
		return nil, err
	}
	w.cached, w.key = s, headOf(content)
	return s, nil
}

// Edit changes the world in one step that no other sees half done: all of what change did is written, or, when change
// returns an error, nothing. It blocks for as long as others change the world. The change must be quick, must not use the
// World and must keep nothing of the State.
func (w *World) Edit(ctx context.Context, change func(*State) error) error {
	_, err := w.edit(ctx, change)
	return err
}

// edit is Edit that returns the head of the world as change left it.
func (w *World) edit(ctx context.Context, change func(*State) error) (head string, err error) {
	unlock, err := w.lock(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	s, before, err := w.current()
	if err != nil {
		return "", err
	}
	if err := change(s); err != nil {
		return "", err
	}
	revision := s.Revision
	after, err := json.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("write world: %w", err)
	}
	if !bytes.Equal(before, after) {
		s.Revision++
		after = bytes.Replace(after, revisionField(revision), revisionField(s.Revision), 1) // it comes second
		if err := w.store(after); err != nil {
			return "", err
		}
	}
	w.last, w.lastContent = s, after
	return headOf(after), nil
}

// current is the world to be changed: the one this handle wrote last, if nobody has changed it since, else the file's.
// The caller holds the lock.
func (w *World) current() (*State, []byte, error) {
	last, content := w.last, w.lastContent
	w.last, w.lastContent = nil, nil // until it is written
	head, err := w.head()
	if isMissing(err) {
		s, err := newState()
		return s, nil, err
	}
	if err != nil {
		return nil, nil, err
	}
	if last != nil && headOf(content) == head {
		return last, content, nil
	}
	return w.load()
}

func revisionField(n int64) []byte { return fmt.Appendf(nil, `"revision":%d,`, n) }

func newState() (*State, error) {
	id, err := newUID()
	if err != nil {
		return nil, err
	}
	s := &State{World: id, Delays: defaultDelays}
	s.fill()
	return s, nil
}

// newUID is 16 hex digits, never the same twice.
func newUID() (string, error) {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", fmt.Errorf("make uid: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}
