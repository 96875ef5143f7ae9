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

// selectedWithin is the longest time that a scale-out needs from the end of Discover to the end of Select.
const selectedWithin = 10 * time.Second

// chosen records the capacity that this worker's scale-outs have chosen, until the provider publishes the hold for
// it. The next scale-outs subtract this capacity, so that they do not choose it, too. Discover makes a preliminary
// record of its best candidate, which Select replaces. The zero value is ready for use.
type chosen struct {
	turn sync.Mutex // a scale-out holds it while it ranks the candidates and records the best one
	mu   sync.Mutex
	of   map[string][]chosenAmount // by provider
}

type chosenAmount struct {
	at    fleet.Attempt // the number 0 marks a preliminary record
	shape corev1.ResourceList
	when  time.Time
}

// isOpen reports whether the provider's state does not yet show the result of the choice. The parameter age is the age
// of this state. A choice that is older than remembered is not open.
func (a chosenAmount) isOpen(state fleet.ProviderSnapshot, age, remembered time.Duration, now time.Time) bool {
	if a.at.Number == 0 {
		return now.Sub(a.when) < selectedWithin && !slices.ContainsFunc(state.Holds, func(key string) bool {
			instance, _, ok := fleet.ParseObjectName(a.at.Group, key) // Select may have run in another worker
			return ok && instance == a.at.Instance
		})
	}
	read := now.Add(-age)
	return !slices.Contains(state.Holds, a.at.ObjectName()) && read.Sub(a.when) < publishedWithin &&
		now.Sub(a.when) < remembered
}

// set records a choice, and forgets the earlier choices of the same instance.
func (c *chosen) set(provider string, at fleet.Attempt, shape corev1.ResourceList, now time.Time) {
	c.forget(at.Instance)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[string][]chosenAmount{}
	}
	c.of[provider] = append(c.of[provider], chosenAmount{at, shape, now})
}

// Chose reports whether a scale-out of this worker has chosen the provider in the last minute, or has it as its best
// candidate.
func (a *Activities) Chose(provider string) bool {
	a.chosen.mu.Lock()
	defer a.chosen.mu.Unlock()
	return slices.ContainsFunc(a.chosen.of[provider], func(c chosenAmount) bool {
		return a.now().Sub(c.when) < rememberedFor
	})
}

// forget removes the choices of an instance that chooses again. It returns their providers.
func (c *chosen) forget(instance string) (providers []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for provider := range c.of {
		before := len(c.of[provider])
		c.keep(provider, func(a chosenAmount) bool { return a.at.Instance != instance })
		if len(c.of[provider]) < before {
			providers = append(providers, provider)
		}
	}
	return providers
}

// keep removes those choices of a provider for which the function keeps returns false. The caller must have locked
// mu.
func (c *chosen) keep(provider string, keeps func(chosenAmount) bool) {
	c.of[provider] = slices.DeleteFunc(c.of[provider], func(a chosenAmount) bool { return !keeps(a) })
	if len(c.of[provider]) == 0 {
		delete(c.of, provider)
	}
}

// subtractFrom subtracts the open choices from a candidate. The method isOpen describes the parameters state, age and
// remembered. subtractFrom returns how many of the subtracted choices belong to the group. It forgets the choices that
// are not open.
func (c *chosen) subtractFrom(from *choice.Candidate, state fleet.ProviderSnapshot, group string,
	age, remembered time.Duration, now time.Time) (own int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	provider := from.Offer.Provider
	if len(c.of[provider]) == 0 {
		return 0
	}
	c.keep(provider, func(a chosenAmount) bool { return a.isOpen(state, age, remembered, now) })
	for _, a := range c.of[provider] {
		from.Take(1, a.shape)
		if a.at.Group == group {
			own++
		}
	}
	return own
}
