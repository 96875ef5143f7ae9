package activities

import (
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/choice"
)

// publishedWithin is the longest time that a provider needs to answer a scale-out's choice. Afterwards the provider
// publishes the hold, or has refused it.
const publishedWithin = 5 * time.Second

// chosen records the capacity that this worker's scale-outs have chosen, until the provider publishes the hold for
// it. The next scale-outs subtract this capacity, so that they do not choose it, too. The zero value is ready for
// use.
type chosen struct {
	mu sync.Mutex
	of map[string][]chosenAmount // by provider
}

type chosenAmount struct {
	at    fleet.Attempt
	shape corev1.ResourceList
	when  time.Time
}

// add records a choice.
func (c *chosen) add(provider string, at fleet.Attempt, shape corev1.ResourceList, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[string][]chosenAmount{}
	}
	c.of[provider] = append(c.of[provider], chosenAmount{at, shape, now})
}

// Chose reports whether a scale-out of this worker has chosen the provider in the last minute.
func (a *Activities) Chose(provider string) bool {
	a.chosen.mu.Lock()
	defer a.chosen.mu.Unlock()
	return slices.ContainsFunc(a.chosen.of[provider], func(c chosenAmount) bool {
		return a.now().Sub(c.when) < rememberedFor
	})
}

// forget removes the choices of an instance that chooses again.
func (c *chosen) forget(instance string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for provider := range c.of {
		c.keep(provider, func(a chosenAmount) bool { return a.at.Instance != instance })
	}
}

// keep removes those choices of a provider for which the function keeps returns false. The caller must have locked
// mu.
func (c *chosen) keep(provider string, keeps func(chosenAmount) bool) {
	c.of[provider] = slices.DeleteFunc(c.of[provider], func(a chosenAmount) bool { return !keeps(a) })
	if len(c.of[provider]) == 0 {
		delete(c.of, provider)
	}
}

// subtractFrom subtracts the recorded choices from a candidate, except the choices that the provider's state already
// contains. The parameter read is the time at which this state was read. subtractFrom returns how many of the
// subtracted choices belong to the group. It also forgets old choices, and choices that the state contains.
func (c *chosen) subtractFrom(from *choice.Candidate, state fleet.ProviderSnapshot, group string,
	read, now time.Time) (own int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	provider := from.Offer.Provider
	if len(c.of[provider]) == 0 {
		return 0
	}
	c.keep(provider, func(a chosenAmount) bool {
		return !slices.Contains(state.Holds, a.at.ObjectName()) && read.Sub(a.when) < publishedWithin &&
			now.Sub(a.when) < rememberedFor
	})
	for _, a := range c.of[provider] {
		from.Take(1, a.shape)
		if a.at.Group == group {
			own++
		}
	}
	return own
}
