package activities

import (
	"sync"
	"time"

	"go.temporal.io/sdk/temporal"
)

// Limiter bounds what one provider may have under way in this worker, so that a slow or dead one does not take all
// slots.
type Limiter struct {
	mu    sync.Mutex
	most  int
	taken map[string]*places
}

// places are those of one provider.
type places struct {
	taken   int
	held    time.Duration // how long the last place that was given back had been taken
	changed time.Time     // when a place was last taken or given back
	next    time.Time     // when the last of those that wait comes again
}

// NewLimiter makes a Limiter of so many at once per provider.
func NewLimiter(most int) *Limiter { return &Limiter{most: most, taken: map[string]*places{}} }

// Take takes a place, to be given back by release. When none is free the error is a retryable one of TypeBusy, which
// says when to come again. It does not block.
func (l *Limiter) Take(provider string) (release func(), err error) {
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

// TypeBusy is the error type of a step that found no place in its worker: no event and nobody's guilt.
const TypeBusy = "Busy"

func busy(wait time.Duration) error {
	text := "this worker has all the places of the provider taken; the step waits for one"
	return temporal.NewApplicationErrorWithOptions(text, TypeBusy,
		temporal.ApplicationErrorOptions{NextRetryDelay: wait})
}
