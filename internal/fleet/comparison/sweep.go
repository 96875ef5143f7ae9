package comparison

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
)

// Times and bounds of the sweep.
const (
	// SweepEvery is how often providers are asked for orphans.
	SweepEvery = 5 * time.Minute
	// orphanAfter is how long sweeps in a row must have seen an orphan before it is removed: three of them.
	orphanAfter = 2 * SweepEvery
	// maxSwept bounds the providers of one sweep, maxRemoved what it removes on each, and maxListed what it remembers.
	maxSwept   = 50
	maxRemoved = 20
	maxListed  = 100
	// maxUID and maxObject are longer than any UID, and any name of an attempt's objects.
	maxUID    = 64
	maxObject = 63
	maxWhat   = 300
)

// Sweep is what the sweeps know: the last one, and what they have seen in a row.
type Sweep struct {
	At time.Time `json:"at,omitzero"`
	// Next is the provider that the next one begins with.
	Next string `json:"next,omitempty"`
	// EmptySince is since when sweeps in a row have found nothing at all that we own on the consumer.
	EmptySince *time.Time     `json:"emptySince,omitempty"`
	Orphans    []fleet.Orphan `json:"orphans,omitempty"`
}

// Later is the sweep with all its times moved by d.
func (s Sweep) Later(d time.Duration) Sweep {
	if !s.At.IsZero() {
		s.At = s.At.Add(d)
	}
	if s.EmptySince != nil {
		at := s.EmptySince.Add(d)
		s.EmptySince = &at
	}
	s.Orphans = slices.Clone(s.Orphans)
	for n := range s.Orphans {
		s.Orphans[n].Since = s.Orphans[n].Since.Add(d)
	}
	return s
}

// Swept are the providers that a sweep asks, and what it knows of the hub. It was all read successfully.
type Swept struct {
	At        time.Time
	Groups    []fleet.Snapshot
	Providers []fleet.ProviderSnapshot
	Found     []fleet.Found
	Offers    []fleet.Offer
}

// Asks returns the providers that the sweep asks, in turn, at most maxSwept; next is where the one after goes on.
func (s Sweep) Asks(offers []fleet.Offer, peers []fleet.Provider) (ask []fleet.Provider, next string) {
	known := map[string]bool{}
	all := slices.Clone(peers)
	for _, p := range peers {
		known[p.ID] = true
	}
	for _, o := range offers {
		if !known[o.Provider] {
			known[o.Provider] = true
			all = append(all, fleet.Provider{ID: o.Provider, Credentials: o.Credentials, Network: o.Network})
		}
	}
	slices.SortFunc(all, func(a, b fleet.Provider) int { return cmp.Compare(a.ID, b.ID) })
	first, _ := slices.BinarySearchFunc(all, s.Next,
		func(p fleet.Provider, id string) int { return cmp.Compare(p.ID, id) })
	for n := range min(len(all), maxSwept) {
		ask = append(ask, all[(first+n)%len(all)])
	}
	if len(all) > maxSwept {
		next = all[(first+maxSwept)%len(all)].ID
	}
	return ask, next
}

// After is the sweep that has asked these providers and got these orphans of those that answered: each orphan with
// since when it is seen, and why it is kept. What was seen on a provider that did not answer counts from anew; what was
// seen on one whose turn it was not stays.
func (s Sweep) After(of Swept, asked []fleet.Provider, next string, got []fleet.Orphan) Sweep {
	now := Sweep{At: of.At, Next: next}
	if len(of.Found) == 0 {
		if now.EmptySince = s.EmptySince; now.EmptySince == nil {
			now.EmptySince = &of.At
		}
	}
	turn := map[string]bool{}
	for _, p := range asked {
		turn[p.ID] = true
	}
	seen := map[string]time.Time{}
	for _, o := range s.Orphans {
		seen[o.UID] = o.Since
		if !turn[o.Attempt.Provider.ID] {
			now.Orphans = append(now.Orphans, o)
		}
	}
	for _, o := range got {
		if len(o.UID) > maxUID || len(o.Attempt.ObjectName()) > maxObject {
			continue // it is the provider's invention
		}
		o.Object = shorten.To(o.Object, maxWhat)
		if o.Since = of.At; !seen[o.UID].IsZero() {
			o.Since = seen[o.UID]
		}
		o.KeptBecause = now.kept(o, of)
		now.Orphans = append(now.Orphans, o)
	}
	now.Orphans = fairly(now.Orphans, maxListed)
	return now
}

// fairly cuts to so many, of each provider as many as of the others while it has more: one that invents orphans does
// not displace those of others.
func fairly(all []fleet.Orphan, most int) []fleet.Orphan {
	most = min(most, len(all))
	of := map[string][]fleet.Orphan{}
	for _, o := range all {
		of[o.Attempt.Provider.ID] = append(of[o.Attempt.Provider.ID], o)
	}
	cut := make([]fleet.Orphan, 0, most)
	for turn := 0; len(cut) < most; turn++ {
		for _, id := range slices.Sorted(maps.Keys(of)) {
			if turn < len(of[id]) && len(cut) < most {
				cut = append(cut, of[id][turn])
			}
		}
	}
	slices.SortStableFunc(cut, fleet.Orphan.Compare)
	return cut
}

// kept is why an orphan is not removed now, or "". What nobody can be sure of is left to people.
func (s Sweep) kept(o fleet.Orphan, of Swept) string {
	switch {
	case o.Foreign:
		return "another cluster with this one's Liqo id has made it, or it does not say who has"
	case s.EmptySince != nil && s.At.Sub(*s.EmptySince) < fleet.EmptyGrace:
		return "nothing at all that we own was found on this cluster, which is not believed yet"
	case o.OfPeering():
		return cmp.Or(keptPeering(o, of), s.young(o))
	default:
		return cmp.Or(keptSlice(o, of), s.young(o))
	}
}

func (s Sweep) young(o fleet.Orphan) string {
	if s.At.Sub(o.Since) < orphanAfter {
		return "it is removed when it is still there in ten minutes"
	}
	return ""
}

// keptSlice: only a group that has recovered can say that it does not know an attempt.
func keptSlice(o fleet.Orphan, of Swept) string {
	n := slices.IndexFunc(of.Groups, func(g fleet.Snapshot) bool { return g.Group == o.Attempt.Group })
	if n < 0 || of.Groups[n].Spec == nil {
		return fmt.Sprintf("node group %s does not run, or has no configuration yet", o.Attempt.Group)
	}
	for _, row := range of.Groups[n].Instances {
		if row.Name == o.Attempt.Instance && row.Attempt <= o.Attempt.Number {
			return "its instance is booked"
		}
	}
	for _, p := range of.Providers {
		if p.ID == o.Attempt.Provider.ID && slices.Contains(p.Holds, o.Attempt.ObjectName()) {
			return "its provider holds room for it"
		}
	}
	return ""
}

// keptPeering: what is left of a peering is removed over the provider's offer, as a peering is.
func keptPeering(o fleet.Orphan, of Swept) string {
	id := o.Attempt.Provider.ID
	n := slices.IndexFunc(of.Offers, func(offer fleet.Offer) bool { return offer.Provider == id })
	if n < 0 {
		return "the provider is not offered"
	}
	if of.Offers[n].Unpeer == fleet.UnpeerNever {
		return "the offer says unpeer: never"
	}
	for _, p := range of.Providers {
		if p.ID == id && (p.Phase != fleet.Absent || len(p.Holds)+len(p.Standby) > 0) {
			return "the peering is in use"
		}
	}
	return ""
}

// Removable are the orphans on a provider to remove now: what is left of its peering only after the slices.
func (s Sweep) Removable(provider string) (attempts []fleet.Orphan, peering *fleet.Orphan) {
	slicesLeft := false
	for _, o := range s.Orphans {
		switch {
		case o.Attempt.Provider.ID != provider:
		case o.OfPeering():
			if o.KeptBecause == "" {
				peering = &o
			}
		default:
			slicesLeft = true
			if o.KeptBecause == "" && len(attempts) < maxRemoved {
				attempts = append(attempts, o)
			}
		}
	}
	if slicesLeft {
		peering = nil
	}
	return attempts, peering
}

// Forget takes out an orphan that has been removed.
func (s *Sweep) Forget(o fleet.Orphan) {
	s.Orphans = slices.DeleteFunc(s.Orphans, func(other fleet.Orphan) bool { return other.UID == o.UID })
}
