package market

import (
	"math"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/conversion"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/choice"
)

// smallShare is the largest fraction of an offer's amount that counts as a small change.
const smallShare = 0.1

// semantic compares amounts and times by their values; Kubernetes' own equalities panic at a time.Time.
var semantic = conversion.EqualitiesOrDie(func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 }, time.Time.Equal)

// differ reports whether the new market must be published. To save writes, a change of an amount is not published if it
// is small, is less than a node of any group, and reduces no group's number of possible nodes. A lower number must be
// published, because Cluster Autoscaler would otherwise request nodes that do not fit, and back off from the group.
func differ(old, now Market, groups []fleet.GroupSpec) bool {
	if now.Dropped != old.Dropped || !slices.Equal(old.Groups, now.Groups) ||
		!reflect.DeepEqual(old.Findings, now.Findings) {
		return true
	}
	return !slices.EqualFunc(old.Offers, now.Offers, func(a, b Offer) bool {
		return a.sameTerms(b) && !moved(a.Free, b.Free, b.Lendable, groups) &&
			!moved(a.Lendable, b.Lendable, b.Lendable, groups) && !b.losesPlaces(a, groups, now.At)
	})
}

// losesPlaces reports whether fewer nodes of some group fit on the offer than before.
func (o Offer) losesPlaces(before Offer, groups []fleet.GroupSpec, now time.Time) bool {
	if semantic.DeepEqual(o.Free, before.Free) && semantic.DeepEqual(o.Lendable, before.Lendable) {
		return false
	}
	places := func(g fleet.GroupSpec, o Offer) int {
		return choice.Room(g.InstanceSpec, []choice.Candidate{o.Candidate()}, now)[o.Provider]
	}
	return slices.ContainsFunc(groups, func(g fleet.GroupSpec) bool { return places(g, o) < places(g, before) })
}

// sameTerms reports whether two offers are equal except for their amounts. It ignores the epoch, because the epoch
// depends on the amounts.
func (o Offer) sameTerms(b Offer) bool {
	for _, each := range []*Offer{&o, &b} {
		each.Lendable, each.Free, each.Epoch = nil, nil, ""
	}
	return semantic.DeepEqual(o, b)
}

func moved(old, now, whole corev1.ResourceList, groups []fleet.GroupSpec) bool {
	if len(old) != len(now) {
		return true
	}
	for name, quantity := range now {
		was, ok := old[name]
		if !ok {
			return true
		}
		change := math.Abs(quantity.AsApproximateFloat64() - was.AsApproximateFloat64())
		all := whole[name]
		if change > smallShare*all.AsApproximateFloat64() {
			return true
		}
		for _, g := range groups {
			if each, ok := g.Shape[name]; ok && change >= each.AsApproximateFloat64() {
				return true
			}
		}
	}
	return false
}
