package choice_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/choice"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// Place takes the same capacity as the instances of a burst. Two equal offers have 8 CPUs each. Two small nodes that
// do not exist yet are placed first, one on each offer. A node of 8 CPUs then fits on neither offer, and Place counts
// it as a node that does not fit.
func TestPlacePredictsWhereNodesAreCreated(t *testing.T) {
	for name, by := range map[string]*fleet.Selection{"price": nil, "spread": {Price: 1, Spread: 1}} {
		t.Run(name, func(t *testing.T) {
			small, large := chooseSpec, chooseSpec
			small.Selection, large.ID = by, "large"
			large.Shape = amounts("cpu", "8", "memory", "4Gi", "pods", "50")
			placed := []choice.Candidate{candidate("a", 1), candidate("b", 1)}
			choice.Place(small, 2, placed, chooseAt)
			require.Equal(t, []int{1, 1}, []int{placed[0].Nodes, placed[1].Nodes})
			require.Empty(t, choice.Room(large, placed, chooseAt))
		})
	}
}

// In random markets, Place takes the same capacity as instances that choose one after another.
func TestPlaceEqualsABurstInRandomMarkets(t *testing.T) {
	selections := []*fleet.Selection{nil, {Price: 1, Latency: 1}, {Price: 1, Spread: 1}, {Pack: 1}}
	for r := range testkit.Cases(t) {
		spec, all := randomShape(r), randomCandidates(r, 12)
		spec.Selection = selections[r.IntN(len(selections))]
		places := 0
		for _, room := range choice.Room(spec, all, chooseAt) {
			places += room
		}
		waiting, took := r.IntN(min(places, 30)+2), map[string]int{}
		for ahead := range min(waiting, places) {
			took[choice.Choose(spec, all, nil, choice.Rank{Ahead: ahead, Name: spec.ID}, chooseAt).Chosen]++
		}
		before := map[string]int{}
		for _, c := range all {
			before[c.Offer.Provider] = c.Nodes
		}
		choice.Place(spec, waiting, all, chooseAt)
		for _, c := range all {
			require.Equal(t, took[c.Offer.Provider], c.Nodes-before[c.Offer.Provider], c.Offer.Provider)
		}
	}
}

// When an offer without a price fits, the prices of all other offers still count.
func TestPricesCountNextToAnOfferWithoutAPrice(t *testing.T) {
	at := func(ms, most int) func(*choice.Candidate) {
		return func(c *choice.Candidate) { c.Offer.LatencyMilliseconds, c.Offer.MaxNodes = ms, most }
	}
	cheap, dear := candidate("cheap", 1, at(10, 5)), candidate("dear", 100, at(9, 5))
	free := candidate("free", 0, at(500, 1))
	all := []choice.Candidate{cheap, dear, free}
	spec := chooseSpec
	spec.Selection = &fleet.Selection{Price: 1, Latency: 1}
	require.Equal(t, "free", choice.Choose(spec, all, nil, choice.Rank{Name: "edge"}, chooseAt).Chosen)
	require.Equal(t, "cheap", choice.Choose(spec, all, nil, choice.Rank{Ahead: 1, Name: "edge"}, chooseAt).Chosen)
	spec.Selection = &fleet.Selection{Price: 1, Latency: 3}
	require.Equal(t, "cheap", choice.Choose(spec, all, nil, choice.Rank{Name: "edge"}, chooseAt).Chosen)
}
