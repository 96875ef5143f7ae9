package activities

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Conditions keeps the faults of providers that the last observer round in this worker found. The zero value is ready
// for use, and nil keeps nothing.
type Conditions struct {
	mu sync.Mutex
	at time.Time
	of map[string]string

	orphans []fleet.Orphan
}

// orphansLast is the age up to which a list of orphans is published, though other workers have run the rounds since.
const orphansLast = 15 * time.Minute

// conditionsLast is the age up to which a round is published: the next round may run in another worker.
const conditionsLast = 2 * time.Minute

// Of returns the conditions by provider, "" for a healthy provider; nil when this worker ran none of the last rounds.
func (c *Conditions) Of(now time.Time) map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.at) > conditionsLast {
		return nil
	}
	return maps.Clone(c.of)
}

// Orphans returns the orphans that the last sweep found on providers; nil when this worker has run no round for a
// while.
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
