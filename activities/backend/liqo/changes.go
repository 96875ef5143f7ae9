package liqo

import (
	"sync"
	"sync/atomic"
)

// changes wakes the waiters for an object as soon as Watch sees a change of the object, so that they notice Liqo's
// work immediately. It only saves time: waiters also poll, because a Watch may not run, or may miss a change.
type changes struct {
	mu       sync.Mutex
	waiting  map[chan struct{}]string // waiter -> name of the objects
	watching atomic.Int64             // number of Watch calls that report all changes
}

// register counts one more running Watch, until the function end is called.
func (c *changes) register() (end func()) {
	c.watching.Add(1)
	return func() { c.watching.Add(-1) }
}

// watched reports whether a Watch is running. Waiters then poll only for changes that the Watch has missed.
func (c *changes) watched() bool { return c.watching.Load() > 0 }

// follow returns a channel that receives a value when an object of that name has changed, until stop is called.
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

// notify wakes the waiters for the name. It does not block.
func (c *changes) notify(name string) {
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
