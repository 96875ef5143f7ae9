package fleet

import (
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
)

// Choice is a Decision as its group remembers it: the provider that an attempt asks, or that the instance failed.
type Choice struct {
	At       time.Time `json:"at"`
	Instance string    `json:"instance"`
	Attempt  int       `json:"attempt,omitempty"`
	// Provider is the one chosen; empty when the instance failed.
	Provider string `json:"provider,omitempty"`
	// Why is what spoke for the provider, or what failed, at most 160 characters.
	Why string `json:"why,omitempty"`
}

// Bounds of what a group remembers of its decisions: 40 KiB at most, and 10 KiB of usual names and texts.
const (
	Choices = 50
	maxWhy  = 160
)

// chose remembers what an accepted view tells of a choice; attempt is the instance's before it.
func (l *Ledger) chose(e *Entry, v View, attempt int, now time.Time) {
	c := Choice{At: now.UTC().Truncate(time.Second), Instance: e.Name, Attempt: v.Attempt, Provider: e.Provider(),
		Why: v.Why}
	switch {
	case v.Attempt > attempt && c.Provider != "":
	case v.Phase == Failed && v.Failure != nil:
		c.Provider, c.Why = "", string(v.Failure.Code)+": "+v.Failure.Message
	default:
		return
	}
	c.Why = shorten.To(c.Why, maxWhy)
	l.Choices = append(l.Choices, c)
	l.Choices = l.Choices[max(0, len(l.Choices)-Choices):]
}
