package fleet

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// Hash is a short fingerprint of the spec: equal specs have equal hashes, whatever the order of their maps.
func (s GroupSpec) Hash() string {
	b, err := json.Marshal(s)
	if err != nil { // a GroupSpec holds nothing that cannot be marshalled
		panic(fmt.Sprintf("marshal group spec %q: %v", s.ID, err))
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:6])
}
