//go:build externalgrpc

package inprocess

import (
	"maps"
	"slices"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/comparison"
)

// compare runs the part of the observer's round that evaluates the providers, at most once a minute. Instances on a
// silent provider are lost after budgets.unready. The caller holds w.groups.mu.
func (w *world) compare() {
	if w.now().Sub(w.outlook.At) < time.Minute {
		return
	}
	w.round++
	seen := comparison.Outlook{At: w.now()}
	var providers []fleet.ProviderSnapshot
	for _, o := range w.offers {
		e := comparison.Evidence{Provider: o.Provider, Access: fleet.AccessGranted}
		if w.dead[o.Provider] {
			e.Access = fleet.AccessSilent
		}
		seen.Evidence = append(seen.Evidence, e)
		offer := o.Candidate().Offer
		providers = append(providers, fleet.ProviderSnapshot{ID: o.Provider, Phase: fleet.Established,
			Holds: []string{"some"}, Offer: &offer})
	}
	var snapshots []fleet.Snapshot
	for _, id := range slices.Sorted(maps.Keys(w.groups.by)) {
		snapshots = append(snapshots, w.groups.by[id].Snapshot(w.now()))
	}
	j := comparison.Judge(w.outlook, seen, snapshots, providers, func(string) bool { return false })
	w.outlook = j.Now
	for _, p := range providers {
		p.Standing = w.standing[p.ID]
		if s, changed := j.Standing(p); changed {
			w.standing[p.ID] = s
		}
	}
	for id, lost := range j.Losses {
		l := w.groups.by[id]
		d := fleet.Differences{Round: fleet.RoundID{Term: 1, Number: w.round}, Revision: l.Revision, Lost: lost}
		l.Step(fleet.GroupInput{Differences: &d}, w.now())
	}
}
