package client

import (
	"context"
	"encoding/json"
	"sync"
	"time"
)

// mailbox shares signals: per target at most one of this process is in flight, the next one follows after a pause, and
// what arrives meanwhile goes with it. A burst of a thousand views costs its group a few hundred signals instead of a
// thousand; Temporal starves a workflow that gets more than some fifty a second, and fails its task at a hundred while
// one runs.
type mailbox[T any] struct {
	send  func(ctx context.Context, target string, rows []T) error
	pause time.Duration
	mu    sync.Mutex
	// waiting are the letters for the next signals, by target; a target has an entry while something is sent to it.
	waiting map[string][]letter[T]
}

// letter is what one caller sends; its rows travel together.
type letter[T any] struct {
	rows []T
	size int // in bytes, about
	done chan error
}

// Bounds of one signal: Temporal refuses one of 2 MiB, again and again, and warns of one of 256 KiB. A letter that is
// larger travels alone.
const (
	mailRows    = 100
	mailBytes   = 256 << 10
	mailTimeout = 10 * time.Second
	// mailPause is the least time between two signals of one kind to a group: at most 20 a second reach it from a process.
	// Providers have fewer, and a driver waits for what it asks them.
	mailPause = 50 * time.Millisecond
)

func newMailbox[T any](pause time.Duration, send func(ctx context.Context, target string, rows []T) error) *mailbox[T] {
	return &mailbox[T]{send: send, pause: pause, waiting: map[string][]letter[T]{}}
}

// put delivers rows, and returns once they are durable, or the context ends: then they may be delivered all the same.
func (m *mailbox[T]) put(ctx context.Context, target string, rows ...T) error {
	text, err := json.Marshal(rows) // for its size; sent as it is, as JSON in JSON, it would be checked, for as long
	if err != nil {
		return err
	}
	l := letter[T]{rows: rows, size: len(text), done: make(chan error, 1)}
	m.mu.Lock()
	queue, sending := m.waiting[target]
	m.waiting[target] = append(queue, l)
	m.mu.Unlock()
	if !sending {
		go m.deliver(target)
	}
	select {
	case err := <-l.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// deliver sends what there is, until there is nothing more.
func (m *mailbox[T]) deliver(target string) {
	for {
		letters, rows := m.take(target)
		if len(letters) == 0 {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), mailTimeout)
		err := m.send(ctx, target, rows)
		cancel()
		for _, l := range letters {
			l.done <- err
		}
		time.Sleep(m.pause)
	}
}

// take returns the letters of the next signal, and their rows.
func (m *mailbox[T]) take(target string) (letters []letter[T], rows []T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	queue := m.waiting[target]
	size := 0
	for len(queue) > 0 {
		l := queue[0]
		size += l.size
		if len(letters) > 0 && (len(rows)+len(l.rows) > mailRows || size > mailBytes) {
			break
		}
		rows = append(rows, l.rows...)
		letters, queue = append(letters, l), queue[1:]
	}
	if m.waiting[target] = queue; len(letters) == 0 {
		delete(m.waiting, target)
	}
	return letters, rows
}
