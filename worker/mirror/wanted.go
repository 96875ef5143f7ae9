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

// seen is the newest data. Its slices are replaced and never changed.
type seen struct {
	groups []fleet.Snapshot
	unread []string
	ended  []money.Spent
	offers []market.Offer
	// hasGroups and hasOffers report that this leader has received groups and offers. Objects of a kind without data stay.
	hasGroups, hasOffers bool
}

// wanted is the content that the objects should have.
type wanted struct {
	status map[Key]map[string]any
	// stays has the objects that are neither written nor deleted: of groups that the observer could not read.
	stays map[Key]bool
	// whole has the kinds of which every object is known, so that further objects are deleted.
	whole map[Kind]bool
}

// wantedOf returns the content for the data.
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

// hashed returns a valid name for the object of an offer whose own name is not valid for an object, or has been taken
// by the offer of another provider.
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

// settled completes the conditions of a status for its object: each has the object's generation, and the time at which
// its state last changed.
func settled(status map[string]any, have Object, now time.Time) map[string]any {
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
