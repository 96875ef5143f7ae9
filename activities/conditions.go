package activities

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Conditions is what the last round of the observer that this worker has run found wrong with providers. The zero
// value is ready for use, and nil remembers nothing.
type Conditions struct {
	mu sync.Mutex
	at time.Time
	of map[string]string

	orphans []fleet.Orphan
}

// orphansLast is how long a list of orphans is worth telling to people, though others have run the rounds since.
const orphansLast = 15 * time.Minute

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

// Orphans are what the last sweep found on providers; nil when this worker has run no round for a while.
func (c *Conditions) Orphans(now time.Time) []fleet.Orphan {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.at) > orphansLast {
		return nil
	}
	return slices.Clone(c.orphans)
}

// Set remembers a round; on nil it does nothing.
func (c *Conditions) Set(of map[string]string, orphans []fleet.Orphan, now time.Time) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of, c.orphans, c.at = of, orphans, now
}
