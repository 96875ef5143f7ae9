package fleet

import (
	"maps"
	"slices"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
)

// These constants bound a group's record of its decisions to 40 KiB, or to 10 KiB with usual names and texts.
const (
	Choices = 50
	maxWhy  = 160
)

// recordChoice records the choice of a provider, or the failure of the instance, if an accepted view reports one.
// attempt is the instance's attempt before the view.
func (l *Ledger) recordChoice(e *Entry, v View, attempt int, now time.Time) {
	c := Choice{At: now.UTC().Truncate(time.Second), Instance: e.Name, Attempt: v.Attempt, Provider: e.Provider(),
		Reason: v.Reason}
	switch {
	case v.Attempt > attempt && c.Provider != "":
	case v.Phase == Failed && v.Failure != nil:
		c.Provider, c.Reason = "", string(v.Failure.Code)+": "+v.Failure.Message
	default:
		return
	}
	c.Reason = shorten.Words(c.Reason, maxWhy)
	l.Choices = append(l.Choices, c)
	l.Choices = l.Choices[max(0, len(l.Choices)-Choices):]
}

// These constants bound a group's record of a provider's failures.
const (
	failuresKept = 5
	failuresFor  = 3 * time.Hour
)

// blames reports whether a failure counts against its provider.
func (f *Failure) blames() bool { return f != nil && f.Provider != "" && f.Code.Row().Blames }

// recordFailure records a new failure that a view reports, if a provider is to blame for the failure and the group's
// selection weighs failures.
func (l *Ledger) recordFailure(before, f *Failure, now time.Time) {
	if l.Spec.Selection == nil || l.Spec.Selection.Failures == 0 {
		l.Failures = nil
		return
	}
	if !f.blames() || before != nil && *before == *f {
		return
	}
	recent := map[string][]time.Time{f.Provider: {now}}
	for _, provider := range slices.Sorted(maps.Keys(l.Failures)) {
		for _, at := range slices.Backward(l.Failures[provider]) {
			if now.Sub(at) <= failuresFor && len(recent[provider]) < failuresKept {
				recent[provider] = slices.Insert(recent[provider], 0, at)
			}
		}
	}
	l.Failures = recent
}
