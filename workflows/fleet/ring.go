package fleet

import "slices"

// ringSize bounds how many operation ids are remembered. An operation lives for seconds, and a group sees a few a
// second at most, so this is minutes of memory.
const ringSize = 256

// Ring remembers the last operation ids, oldest first. It survives continue-as-new with the state it is part of.
type Ring struct {
	IDs []string `json:"ids,omitempty"`
}

// Has tells whether id is remembered.
func (r *Ring) Has(id string) bool { return slices.Contains(r.IDs, id) }

// Add remembers id, and forgets the oldest when full.
func (r *Ring) Add(id string) {
	r.IDs = append(r.IDs, id)
	r.IDs = r.IDs[max(0, len(r.IDs)-ringSize):]
}
