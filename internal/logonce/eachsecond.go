package logonce

import (
	"sync"

	"golang.org/x/time/rate"
)

// burst is the number of faults that may be logged without delay.
const burst = 10

// EachSecond limits the log lines about faults that other parties cause. It permits ten lines without delay, and then
// one line each second. The zero value is ready for use. It is safe for concurrent use.
type EachSecond struct {
	mu      sync.Mutex
	limiter *rate.Limiter
	since   int
}

// Next reports whether the caller may log a fault now. skipped is the number of faults that were not logged since the
// last logged one.
func (e *EachSecond) Next() (skipped int, log bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.limiter == nil {
		e.limiter = rate.NewLimiter(1, burst)
	}
	if !e.limiter.Allow() {
		e.since++
		return 0, false
	}
	skipped, e.since = e.since, 0
	return skipped, true
}
