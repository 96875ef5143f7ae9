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

// A sweep lists our orphans on providers. These constants are its times and bounds.
const (
	// SweepEvery is the interval at which orphans are listed on providers.
	SweepEvery = 5 * time.Minute
	// An orphan is removed only when consecutive sweeps have found it for orphanAfter. This takes three sweeps.
	orphanAfter = 2 * SweepEvery
	// maxSwept bounds the number of providers that one sweep queries. maxRemoved bounds the number of orphans that a
	// sweep removes on each provider. maxListed bounds the number of orphans that it remembers.
	maxSwept   = 50
	maxRemoved = 20
	maxListed  = 100
	// maxUID and maxObject bound the length of a UID and of an object's name. No genuine value is longer.
	maxUID    = 64
	maxObject = 63
	maxWhat   = 300
)

// Sweep contains the time of the last sweep and the orphans that consecutive sweeps have found.
type Sweep struct {
	At time.Time `json:"at,omitzero"`
	// Next names the provider with which the next sweep starts.
	Next string `json:"next,omitempty"`
	// EmptySince is the time since which consecutive sweeps have found none of our objects on the consumer.
	EmptySince *time.Time     `json:"emptySince,omitempty"`
	Orphans    []fleet.Orphan `json:"orphans,omitempty"`
}

// Later returns the sweep with d added to all its times.
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

// Swept contains the input of a sweep: the hub's groups, providers, objects and offers, all read successfully.
type Swept struct {
	At        time.Time
	Groups    []fleet.Snapshot
	Providers []fleet.ProviderSnapshot
	Found     []fleet.Found
	Offers    []fleet.Offer
}

// Asks returns at most maxSwept providers for the sweep to query, in rotation. next names the provider with which the
// following sweep starts; it is "" when one sweep covers all providers.
func (s Sweep) Asks(offers []fleet.Offer, peers []fleet.Provider) (query []fleet.Provider, next string) {
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
		query = append(query, all[(first+n)%len(all)])
	}
	if len(all) > maxSwept {
		next = all[(first+maxSwept)%len(all)].ID
	}
	return query, next
}

// After returns the sweep's result: the orphans of the queried providers. Each orphan has the time at which it was
// first found, and the reason why it is kept. For a provider that did not answer, the time starts again. Orphans on
// providers that the sweep did not query stay listed.
func (s Sweep) After(of Swept, queried []fleet.Provider, next string, got []fleet.Orphan) Sweep {
	now := Sweep{At: of.At, Next: next}
	if len(of.Found) == 0 {
		if now.EmptySince = s.EmptySince; now.EmptySince == nil {
			now.EmptySince = &of.At
		}
	}
	inSweep := map[string]bool{}
	for _, p := range queried {
		inSweep[p.ID] = true
	}
	seen := map[string]time.Time{}
	for _, o := range s.Orphans {
		seen[o.UID] = o.Since
		if !inSweep[o.Attempt.Provider.ID] {
			now.Orphans = append(now.Orphans, o)
		}
	}
	for _, o := range got {
		if len(o.UID) > maxUID || len(o.Attempt.ObjectName()) > maxObject {
			continue // the provider has invented the name
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

// fairly shortens the list to the number of orphans in the parameter most. It selects one orphan of each provider per
// turn, so that a provider that invents orphans does not displace the orphans of other providers.
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

// kept returns the reason why an orphan is not removed now, or "" if the orphan can be removed. An orphan of unknown
// origin is never removed automatically.
func (s Sweep) kept(o fleet.Orphan, of Swept) string {
	switch {
	case o.Foreign:
		return "another cluster with the same Liqo id created the object, or the object does not name its creator"
	case s.EmptySince != nil && s.At.Sub(*s.EmptySince) < fleet.EmptyGrace:
		return "the list of our objects on this cluster is empty, which may be an error; nothing is removed for five minutes"
	case o.OfPeering():
		return cmp.Or(keptPeering(o, of), s.young(o))
	default:
		return cmp.Or(keptSlice(o, of), s.young(o))
	}
}

func (s Sweep) young(o fleet.Orphan) string {
	if s.At.Sub(o.Since) < orphanAfter {
		return "it is removed if it still exists after ten minutes"
	}
	return ""
}

// keptSlice returns the reason to keep a slice. If the slice's group does not run or has no spec yet, the slice is
// kept, because the group may not know all its attempts.
func keptSlice(o fleet.Orphan, of Swept) string {
	n := slices.IndexFunc(of.Groups, func(g fleet.Snapshot) bool { return g.Group == o.Attempt.Group })
	if n < 0 || of.Groups[n].Spec == nil {
		return fmt.Sprintf("node group %s does not run, or has no configuration yet", o.Attempt.Group)
	}
	for _, row := range of.Groups[n].Instances {
		if row.Name == o.Attempt.Instance && row.Attempt <= o.Attempt.Number {
			return "its instance still exists in its node group"
		}
	}
	for _, p := range of.Providers {
		if p.ID == o.Attempt.Provider.ID && slices.Contains(p.Holds, o.Attempt.ObjectName()) {
			return "its provider's workflow has a hold for it"
		}
	}
	return ""
}

// keptPeering returns the reason to keep the leftovers of a peering. The removal of leftovers needs the credentials of
// the provider's offer, like the removal of a peering.
func keptPeering(o fleet.Orphan, of Swept) string {
	id := o.Attempt.Provider.ID
	n := slices.IndexFunc(of.Offers, func(offer fleet.Offer) bool { return offer.Provider == id })
	if n < 0 {
		return "the provider has no offer"
	}
	if of.Offers[n].Unpeer == fleet.UnpeerNever {
		return "the offer sets unpeer: never"
	}
	for _, p := range of.Providers {
		if p.ID == id && (p.Phase != fleet.Absent || len(p.Holds)+len(p.Standby) > 0) {
			return "the peering is in use"
		}
	}
	return ""
}

// Removable returns the orphans to remove on a provider now. It returns the leftovers of the peering only when no
// slice is left.
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

// Forget removes a deleted orphan from the list.
func (s *Sweep) Forget(o fleet.Orphan) {
	s.Orphans = slices.DeleteFunc(s.Orphans, func(other fleet.Orphan) bool { return other.UID == o.UID })
}
