package mirror

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
)

// seen holds the newest data. Its slices are replaced and never changed in place.
type seen struct {
	groups []fleet.Snapshot
	unread []string
	ended  []money.Spent
	offers []market.Offer
	// hasGroups and hasOffers report whether this leader has received groups and offers. Until then the mirror deletes no
	// object of that kind.
	hasGroups, hasOffers bool
}

// wanted holds the content that the objects should have.
type wanted struct {
	status map[Key]map[string]any
	// stays marks the objects of groups that the observer could not read. These objects are neither written nor deleted.
	stays map[Key]bool
	// whole marks the kinds of which status contains every object. The mirror deletes other objects of these kinds.
	whole map[Kind]bool
}

// wantedOf computes the wanted objects from the data.
func wantedOf(s seen, now time.Time) (wanted, error) {
	w := wanted{map[Key]map[string]any{}, map[Key]bool{}, map[Kind]bool{KindGroup: s.hasGroups, KindOffer: s.hasOffers}}
	for _, g := range s.groups {
		status := statusOfGroup(g, s.groups, s.ended, now)
		if err := w.add(Key{KindGroup, g.Group}, &status); err != nil {
			return wanted{}, err
		}
	}
	for _, name := range s.unread {
		w.stays[Key{KindGroup, name}] = true
	}
	offers := slices.SortedFunc(slices.Values(s.offers), func(a, b market.Offer) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Provider, b.Provider))
	})
	for _, o := range offers {
		key := Key{KindOffer, o.Name}
		if _, taken := w.status[key]; taken || len(validation.IsDNS1123Subdomain(o.Name)) > 0 {
			key.Name = hashed(o)
		}
		status := statusOfOffer(o, now)
		if err := w.add(key, &status); err != nil {
			return wanted{}, err
		}
	}
	return w, nil
}

// hashed returns a name for the object of an offer. It is used if the offer's own name is not a valid object name, or
// if another provider's offer has the same name.
func hashed(o market.Offer) string {
	sum := sha256.Sum256([]byte(o.Provider + "/" + o.Name))
	return "offer-" + hex.EncodeToString(sum[:8])
}

func (w wanted) add(key Key, status any) (err error) {
	if w.status[key], err = runtime.DefaultUnstructuredConverter.ToUnstructured(status); err != nil {
		return fmt.Errorf("render %s %s: %w", key.Kind, key.Name, err)
	}
	return nil
}

// withTimes returns a copy of the status. Each condition in the copy has the object's generation, and the time at
// which the condition's state last changed.
func withTimes(status map[string]any, have Object, now time.Time) map[string]any {
	before, _ := have.Status["conditions"].([]any)
	since := map[[2]any]any{}
	for _, one := range before {
		if c, ok := one.(map[string]any); ok {
			since[[2]any{c["type"], c["status"]}] = c["lastTransitionTime"]
		}
	}
	status = runtime.DeepCopyJSON(status)
	conditions, _ := status["conditions"].([]any)
	for _, one := range conditions {
		c, _ := one.(map[string]any)
		c["observedGeneration"] = have.Generation
		c["lastTransitionTime"] = now.UTC().Format(time.RFC3339)
		if at, _ := since[[2]any{c["type"], c["status"]}].(string); at != "" {
			c["lastTransitionTime"] = at
		}
	}
	return status
}
