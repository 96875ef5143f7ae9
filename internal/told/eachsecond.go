package told

import (
	"sync"

	"golang.org/x/time/rate"
)

// burst is how many faults are told at once, before one is told each second.
const burst = 10

// EachSecond keeps faults that others cause from filling a log: ten are told at once, and then one each second. The
// zero value has told nothing. It is safe for concurrent use.
type EachSecond struct {
	mu      sync.Mutex
	limiter *rate.Limiter
	since   int
}

// Next reports whether the present fault may be told, and how many have not been told since the last one that was.
func (e *EachSecond) Next() (untold int, tell bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.limiter == nil {
		e.limiter = rate.NewLimiter(1, burst)
	}
	if !e.limiter.Allow() {
		e.since++
		return 0, false
	}
	untold, e.since = e.since, 0
	return untold, true
}
