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
	taken map[string]int
}

// NewLimiter makes a Limiter of so many at once per provider.
func NewLimiter(most int) *Limiter { return &Limiter{most: most, taken: map[string]int{}} }

// Take takes a place, to be given back by release; ok is false when none is free. It does not block.
func (l *Limiter) Take(provider string) (release func(), ok bool) {
	if l == nil {
		return func() {}, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.taken[provider] >= l.most {
		return nil, false
	}
	l.taken[provider]++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.taken[provider]--; l.taken[provider] == 0 {
			delete(l.taken, provider)
		}
	}, true
}

// busyDelay is when a step that found no place comes again.
const busyDelay = time.Second

// TypeBusy is the error type of a step that found no place in its worker: no event and nobody's guilt.
const TypeBusy = "Busy"

func busy() error {
	text := "this worker has all the places of the provider taken; the step waits for one"
	return temporal.NewApplicationErrorWithOptions(text, TypeBusy,
		temporal.ApplicationErrorOptions{NextRetryDelay: busyDelay})
}
