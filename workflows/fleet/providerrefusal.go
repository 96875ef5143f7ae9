package fleet

import "time"

// ProviderRefusal is a provider's no to this cluster as a whole. It stays in force until the provider lifts it, or its
// time is over.
type ProviderRefusal struct {
	Kind RefusingKind `json:"kind"`
	// Reason is a sentence in the provider's words, as far as it has any.
	Reason string `json:"reason"`
	// Until is when it ends by itself; zero: only the provider lifts it.
	Until time.Time `json:"until,omitzero"`
}

// RefusingKind is how a provider refuses.
type RefusingKind string

// The kinds.
const (
	RefusingCordoned RefusingKind = "Cordoned" // it takes no new nodes; those that are there stay
	RefusingDrained  RefusingKind = "Drained"  // it has taken back all that it gave
	RefusingRemoved  RefusingKind = "Removed"  // it has removed its part of the peering
)

// Over reports whether its time is over.
func (r ProviderRefusal) Over(now time.Time) bool { return !r.Until.IsZero() && !now.Before(r.Until) }
