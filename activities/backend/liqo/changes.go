package liqo

import (
	"sync"
	"sync/atomic"
)

// changes wakes who waits for an object as soon as Watch sees it change, so that what Liqo does is noticed at once.
// Nothing depends on it: without a Watch, and for what one misses, waiters poll.
type changes struct {
	mu       sync.Mutex
	waiting  map[chan struct{}]string // by whom, for objects of which name
	watching atomic.Int64             // how many Watches see all changes
}

// begin says that somebody watches, until end is called.
func (c *changes) begin() (end func()) {
	c.watching.Add(1)
	return func() { c.watching.Add(-1) }
}

// watched reports whether changes are told as they come, so that polling is for what a Watch misses.
func (c *changes) watched() bool { return c.watching.Load() > 0 }

// follow returns a channel that holds a token once an object of that name has changed, until stop is called.
func (c *changes) follow(name string) (changed <-chan struct{}, stop func()) {
	token := make(chan struct{}, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting == nil {
		c.waiting = map[chan struct{}]string{}
	}
	c.waiting[token] = name
	return token, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.waiting, token)
	}
}

// tell wakes those who wait for the name. It does not block.
func (c *changes) tell(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for token, of := range c.waiting {
		if of != name {
			continue
		}
		select {
		case token <- struct{}{}:
		default:
		}
	}
}
