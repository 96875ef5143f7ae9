package choice

import (
	"slices"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// RankStandby returns about 20 providers that a group could keep peered, the best first. These are the providers of
// the group's present standbys, the best providers that fit, and providers that fit and are already peered. states
// maps provider ids to snapshots. peers lists the providers to which we have a peering. After a loss of all histories,
// the peerings are in peers, but not in states. RankStandby is pure.
func RankStandby(q fleet.StandbyQuestion, candidates []Candidate, states map[string]fleet.ProviderSnapshot,
	peers []fleet.Provider, now time.Time) []fleet.StandbyRow {
	var rows, unfit []fleet.StandbyRow
	cold, seen := 0, map[string]bool{}
	peered := evaluate(q.Spec, asPeered(candidates), nil, now)
	for j := range peered.best(peered.choice(Rank{Name: q.Spec.ID})) {
		id := j.candidate.Offer.Provider
		row, held := standbyRow(q, j, states[id])
		row.Warm = slices.ContainsFunc(peers, func(p fleet.Provider) bool { return p.ID == id })
		enough := len(rows) >= MaxCandidates || !row.Warm && cold > q.Standby
		if seen[id] || !held && (!row.Fits || enough) {
			continue
		}
		seen[id] = true
		if !row.Fits {
			unfit = append(unfit, row)
			continue
		}
		rows = append(rows, row)
		if !row.Warm {
			cold++
		}
	}
	for _, h := range q.Held {
		if !seen[h.Provider] {
			unfit = append(unfit, fleet.StandbyRow{Offer: fleet.Offer{Provider: h.Provider},
				State: states[h.Provider].Standby[h.Key]})
		}
	}
	return append(rows, unfit...)
}

// asPeered returns the candidates as they would be with a peering.
func asPeered(candidates []Candidate) []Candidate {
	candidates = slices.Clone(candidates)
	for n := range candidates {
		candidates[n].Warm = true
	}
	return candidates
}

// standbyRow returns the row of one provider. held reports whether the group has a standby's hold there.
func standbyRow(q fleet.StandbyQuestion, j evaluation, state fleet.ProviderSnapshot) (row fleet.StandbyRow, held bool) {
	row = fleet.StandbyRow{Offer: j.candidate.Offer, Price: j.price, Score: j.score, Offers: j.filter != FilterExpired,
		Fits: j.filter == "" && grantsStandby(state)}
	n := slices.IndexFunc(q.Held, func(h fleet.Standby) bool { return h.Provider == j.candidate.Offer.Provider })
	if n < 0 {
		return row, false
	}
	row.State, row.Excluded = state.Standby[q.Held[n].Key], string(j.filter.excludes())
	return row, true
}

// excludes returns the filter itself if the filter excludes a provider regardless of its free capacity, and ""
// otherwise.
func (f Filter) excludes() Filter {
	switch f {
	case FilterProvider, FilterRefusing, FilterCordoned, FilterSelector, FilterArchitecture, FilterCurrency,
		FilterSpending, FilterNode:
		return f
	case FilterExpired, FilterRefused, FilterFit, FilterMaxNodes:
	}
	return ""
}

// grantsStandby reports whether the provider would grant a standby's hold, according to its snapshot.
func grantsStandby(s fleet.ProviderSnapshot) bool {
	row := s.Phase.Row()
	return !s.Standing.Closes() && (s.Phase == "" || row.Grants || row.Waits)
}
