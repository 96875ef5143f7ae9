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

// smallShare bounds a small change: a small change is at most this fraction of the offered amount.
const smallShare = 0.1

// semantic compares amounts and times by their values. Kubernetes' own comparison (equality.Semantic) panics when it
// compares values of time.Time.
var semantic = conversion.EqualitiesOrDie(func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 }, time.Time.Equal)

// differ reports whether the new market must be published. To save writes, it ignores a small change of an amount. A
// change is small if it is at most smallShare of the offered amount and two conditions are true for each group: the
// change is less than the amount that one node needs, and at least as many nodes fit as before. If fewer nodes fit,
// the market must be published. Otherwise Cluster Autoscaler would request nodes that do not fit, and back off from
// the group.
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

// losesPlaces reports whether, for at least one group, fewer nodes fit on the offer o than on its earlier version
// (the parameter `before`).
func (o Offer) losesPlaces(before Offer, groups []fleet.GroupSpec, now time.Time) bool {
	if semantic.DeepEqual(o.Free, before.Free) && semantic.DeepEqual(o.Lendable, before.Lendable) {
		return false
	}
	places := func(g fleet.GroupSpec, o Offer) int {
		return choice.Room(g.InstanceSpec, []choice.Candidate{o.Candidate()}, now)[o.Provider]
	}
	return slices.ContainsFunc(groups, func(g fleet.GroupSpec) bool { return places(g, o) < places(g, before) })
}

// sameTerms reports whether two offers are equal, ignoring their amounts. It also ignores the epoch, because the
// epoch depends on the amounts.
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
