package activities

import (
	"maps"
	"sync"
	"time"
)

// Conditions is what the last round of the comparison that this worker has run found wrong with providers. The zero
// value is ready for use, and nil remembers nothing.
type Conditions struct {
	mu sync.Mutex
	at time.Time
	of map[string]string
}

// conditionsLast is how long a round is worth telling: the next one may run in another worker.
const conditionsLast = 2 * time.Minute

// Of are the conditions by provider, "" for one with which all is well; nil when this worker ran none of the last
// rounds.
func (c *Conditions) Of(now time.Time) map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.at) > conditionsLast {
		return nil
	}
	return maps.Clone(c.of)
}

// Set remembers a round; on nil it does nothing.
func (c *Conditions) Set(of map[string]string, now time.Time) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of, c.at = of, now
}
