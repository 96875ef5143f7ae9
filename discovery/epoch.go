package discovery

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Epoch returns a short fingerprint of an offer's content, including its provider. Equal offers have equal epochs:
// the order of maps and the notation of quantities do not matter.
func Epoch(o fleet.Offer) string {
	o.Epoch, o.ReadAt = "", time.Time{}
	if o.Expires != nil {
		o.Expires = new(o.Expires.UTC())
	}
	b, err := json.Marshal(o) // only a price that is NaN or infinite cannot be marshalled
	if err != nil {
		b = []byte(o.Name)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:6])
}
