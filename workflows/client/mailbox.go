package client

import (
	"context"
	"encoding/json"
	"sync"
	"time"
)

// mailbox combines signals. For each target at most one signal of this process is in flight. The next signal follows
// after a pause and contains every message that arrived during this time. Therefore a burst of a thousand views
// causes a few hundred signals instead of a thousand. A workflow that gets more than about fifty signals a second
// makes no progress. Temporal fails a workflow task when a hundred signals arrive while the task runs.
type mailbox[T any] struct {
	send  func(ctx context.Context, target string, rows []T) error
	pause time.Duration
	mu    sync.Mutex
	// waiting maps targets to the letters for their next signals. A target has an entry while the mailbox sends signals
	// to it.
	waiting map[string][]letter[T]
}

// letter contains the rows of one caller, which are sent in one signal.
type letter[T any] struct {
	rows []T
	size int // approximate size in bytes
	done chan error
}

// These constants bound one signal. Temporal refuses a signal of more than 2 MiB, and logs a warning above 256 KiB. A
// letter that exceeds a bound is sent alone.
const (
	mailRows    = 100
	mailBytes   = 256 << 10
	mailTimeout = 10 * time.Second
	// mailPause is the minimum time between two signals of one kind to a group, so at most 20 signals a second reach
	// the group from one process. Signals to providers have no pause, because providers get fewer signals and drivers
	// wait for the answers of providers.
	mailPause = 50 * time.Millisecond
)

func newMailbox[T any](pause time.Duration, send func(ctx context.Context, target string, rows []T) error) *mailbox[T] {
	return &mailbox[T]{send: send, pause: pause, waiting: map[string][]letter[T]{}}
}

// put delivers rows. It returns when Temporal has stored them or the context ends. After the end of the context the
// mailbox may still deliver them.
func (m *mailbox[T]) put(ctx context.Context, target string, rows ...T) error {
	text, err := json.Marshal(rows) // used for its size only
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

// deliver sends the waiting letters until no letter is waiting.
func (m *mailbox[T]) deliver(target string) {
	for {
		letters, rows := m.next(target)
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

// next returns the letters of the next signal, and their rows.
func (m *mailbox[T]) next(target string) (letters []letter[T], rows []T) {
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
