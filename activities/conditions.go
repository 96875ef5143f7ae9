package activities

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Conditions stores the faults of providers that the last observer round in this worker found. The zero value is ready
// for use. A nil Conditions stores nothing.
type Conditions struct {
	mu sync.Mutex
	at time.Time
	of map[string]string

	orphans []fleet.Orphan
}

// orphansLast is the greatest age of a list that the method Orphans returns. Other workers may have run the later
// rounds.
const orphansLast = 15 * time.Minute

// conditionsLast is the greatest age of the conditions that the method Of returns. Other workers may have run the
// later rounds.
const conditionsLast = 2 * time.Minute

// Of returns the condition of each provider, "" for a healthy provider. It returns nil when this worker's last round
// is older than conditionsLast.
func (c *Conditions) Of(now time.Time) map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.at) > conditionsLast {
		return nil
	}
	return maps.Clone(c.of)
}

// Orphans returns the orphans that this worker's last round found. An orphan is an object on a provider without a
// counterpart here. It returns nil when this worker's last round is older than orphansLast.
func (c *Conditions) Orphans(now time.Time) []fleet.Orphan {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.at) > orphansLast {
		return nil
	}
	return slices.Clone(c.orphans)
}

// Set stores the results of a round. On a nil Conditions it does nothing.
func (c *Conditions) Set(of map[string]string, orphans []fleet.Orphan, now time.Time) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of, c.orphans, c.at = of, orphans, now
}
