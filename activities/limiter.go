package activities

import (
	"sync"
	"time"

	"go.temporal.io/sdk/temporal"
)

// Limiter limits the number of steps that run concurrently for one provider in this worker, so that a slow or dead
// provider does not occupy all slots. Each running step occupies one place of its provider.
type Limiter struct {
	mu    sync.Mutex
	most  int
	taken map[string]*places
}

// places counts the taken places of one provider.
type places struct {
	taken   int
	held    time.Duration // the time for which the last released place was taken
	changed time.Time     // when a place was last taken or released
	next    time.Time     // when the most recently rejected step tries again
}

// NewLimiter returns a Limiter. The parameter most is the number of places for each provider.
func NewLimiter(most int) *Limiter { return &Limiter{most: most, taken: map[string]*places{}} }

// Acquire takes a place, which the caller must free with release. When no place is free, Acquire returns a retryable
// error of TypeBusy, which carries the delay before the next try. It does not block.
func (l *Limiter) Acquire(provider string) (release func(), err error) {
	if l == nil {
		return func() {}, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	p := l.taken[provider]
	if p == nil {
		p = &places{}
		l.taken[provider] = p
	}
	if p.taken >= l.most {
		return nil, busy(p.wait(now, l.most))
	}
	p.taken, p.changed = p.taken+1, now
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		p.held, p.changed = time.Since(now), time.Now()
		if p.taken--; p.taken == 0 {
			delete(l.taken, provider)
		}
	}, nil
}

// TypeBusy is the error type of a step that found no place in its worker. Such an error records no Event and does not
// count as a failure.
const TypeBusy = "Busy"

func busy(wait time.Duration) error {
	text := "this worker already runs as many steps for this provider as it may; the step waits"
	return temporal.NewApplicationErrorWithOptions(text, TypeBusy,
		temporal.ApplicationErrorOptions{NextRetryDelay: wait})
}
