package discovery

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Epoch is a short fingerprint of an offer's content, its provider included: equal offers have equal epochs, whatever
// the order of their maps or the spelling of their quantities.
func Epoch(o fleet.Offer) string {
	o.Epoch, o.ReadAt = "", time.Time{}
	if o.Expires != nil {
		o.Expires = new(o.Expires.UTC())
	}
	b, err := json.Marshal(o) // an Offer holds nothing that cannot be marshalled, but a price could be no number
	if err != nil {
		b = []byte(o.Name)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:6])
}
