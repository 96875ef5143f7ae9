package fleet_test

import (
	"slices"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/choice"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/provider"
)

// changeStandby changes a group's config or a provider's price. The config and the prices decide on which providers
// the group keeps its standbys.
func (x *explorer) changeStandby(s *server) {
	spec := *s.spec
	spec.Standby = x.rng.IntN(3)
	s.spec = &spec
	c := x.clusters[x.rng.IntN(len(x.clusters))]
	c.price = 8 + x.rng.IntN(8)
	x.note("%s keeps %d peerings ready, %s costs %d", spec.ID, spec.Standby, c.id, c.price)
}

// rankStandby ranks the providers in the same way as the activities.
func (x *explorer) rankStandby(q fleet.StandbyQuestion) []fleet.StandbyRow {
	var all []choice.Candidate
	var peers []fleet.Provider
	states := map[string]fleet.ProviderSnapshot{}
	for _, c := range x.clusters {
		if r := x.runs["provider/"+c.id]; r != nil && r.status == running && r.memo != nil {
			states[c.id] = r.memo.(fleet.ProviderSnapshot)
		}
		if c.peered {
			peers = append(peers, fleet.Provider{ID: c.id})
		}
		all = append(all, choice.CandidateOf(*x.offer(c.id), states[c.id]))
	}
	return choice.RankStandby(q, all, states, peers, x.now)
}

func nodeHolds(p *provider.State) []string {
	return slices.DeleteFunc(p.LiveHolds(), fleet.IsStandby)
}

// checkStandbyRelease checks that a round does not release the hold of a standby that a group keeps.
func (x *explorer) checkStandbyRelease(p *provider.State, key string, in provider.Input) {
	if in.Differences == nil || contains(p.LiveHolds(), key) || x.mode >= modeTerminate {
		return
	}
	for _, s := range x.servers {
		if l := x.group(s.spec.ID); l != nil && slices.ContainsFunc(l.Standby, func(h fleet.Standby) bool {
			return h.Key == key
		}) {
			x.violates("a comparison released %s, which %s keeps", key, l.Group)
		}
	}
}

// standbysOf returns the keys of the standbys that groups keep at a provider at the end of a world, after the phase
// without faults. A group keeps the configured number, or fewer when no other provider has free capacity.
func (x *explorer) standbysOf(c *cluster) (keys []string) {
	for _, s := range x.servers {
		l := x.group(s.spec.ID)
		here := false
		for _, h := range l.Standby {
			if h.State != fleet.HoldGranted {
				x.violates("%s rests, %s by %s", h.Key, h.State, h.Provider)
			}
			if h.Provider == c.id {
				here = true
				keys = append(keys, h.Key)
			}
		}
		if len(l.Standby) > s.spec.Standby {
			x.violates("%s keeps %d peerings ready, and %d are configured", l.Group, len(l.Standby), s.spec.Standby)
		}
		full := 0
		for _, o := range x.objects {
			if o.granted == c.id {
				full++
			}
		}
		if len(l.Standby) < s.spec.Standby && !here && full < c.nodes {
			x.violates("%s keeps %d peerings ready of %d, and none with %s", l.Group, len(l.Standby), s.spec.Standby, c.id)
		}
	}
	slices.Sort(keys)
	return keys
}
