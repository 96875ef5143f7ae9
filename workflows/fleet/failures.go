package fleet

import (
	"maps"
	"slices"
	"time"
)

// What a group remembers of a provider's failures.
const (
	failuresKept = 5
	failuresFor  = 3 * time.Hour
)

// blames reports whether a failure speaks against its provider.
func (f *Failure) blames() bool {
	return f != nil && f.Provider != "" && (f.Code == CodeRefused || f.Code == CodeUnreachable || f.Code == CodeTimeout)
}

// failed remembers a failure of the provider that an instance has met, when the view tells a new one and the group
// weighs them.
func (l *Ledger) failed(before, f *Failure, now time.Time) {
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
