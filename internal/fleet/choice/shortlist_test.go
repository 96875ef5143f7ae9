package choice_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/choice"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// onePlaceEach returns count offers with capacity for one node each (a place). The price rises by the parameter step
// from one offer to the next.
func onePlaceEach(count int, step float64) (all []choice.Candidate) {
	for n := range count {
		all = append(all, candidate(fmt.Sprintf("p%02d", n), 1+step*float64(n), func(c *choice.Candidate) {
			c.Offer.MaxNodes = 1
		}))
	}
	return all
}

// A scale-out first reduces the offers to a shortlist, and a moment later chooses from it. In a burst with as many
// instances as places, each place is taken once, however many providers exist.
func TestBurstTakesEachPlaceOnceFromTheShortlist(t *testing.T) {
	for name, step := range map[string]float64{"equal prices": 0, "different prices": 0.01} {
		t.Run(name, func(t *testing.T) {
			all, taken := onePlaceEach(60, step), map[string]int{}
			for ahead := range 60 {
				short, _ := choice.Shortlist(chooseSpec, all, nil, choice.Rank{Ahead: ahead, Name: "edge"}, chooseAt)
				taken[choice.Keep(chooseSpec, short, nil, chooseAt).Chosen]++
			}
			require.Len(t, taken, 60, "%v", taken)
		})
	}
}

// The choice from the shortlist equals the choice from all offers.
func TestShortlistDoesNotChangeTheChoice(t *testing.T) {
	selections := []*fleet.Selection{nil, {Price: 1, Latency: 1}, {Price: 1, Spread: 1}, {Pack: 1, Failures: 1}}
	for r := range testkit.Cases(t) {
		spec, all := chooseSpec, []choice.Candidate(nil)
		spec.Selection = selections[r.IntN(len(selections))]
		for n := range 1 + r.IntN(60) {
			all = append(all, candidate(fmt.Sprintf("p%02d", n), float64(r.IntN(4)), func(c *choice.Candidate) {
				c.Offer.MaxNodes, c.Own, c.Failures = 1+r.IntN(3), r.IntN(3), float64(r.IntN(2))
				c.Offer.LatencyMilliseconds = r.IntN(100)
			}))
		}
		rank := choice.Rank{Ahead: r.IntN(50), Name: "edge"}
		want := choice.Choose(spec, all, nil, rank, chooseAt)
		short, _ := choice.Shortlist(spec, all, nil, rank, chooseAt)
		got := choice.Keep(spec, short, nil, chooseAt)
		require.Equal(t, want.Chosen, got.Chosen)
		require.Equal(t, want.Assessments[0].Provider, got.Assessments[0].Provider)
	}
}

// The choice from the shortlist leaves out an offer that has expired in the meantime, and a provider that has refused.
func TestShortlistIsFilteredAgain(t *testing.T) {
	soon := chooseAt.Add(1)
	first, second, third := candidate("a", 3), candidate("b", 2), candidate("c", 1)
	first.Offer.Expires = &soon
	short := []choice.Candidate{first, second, third}
	require.Equal(t, "a", choice.Keep(chooseSpec, short, nil, chooseAt).Chosen, "the order is the shortlist's")
	d := choice.Keep(chooseSpec, short, []string{"b"}, chooseAt.Add(2))
	require.Equal(t, "c", d.Chosen)
	require.Equal(t, map[string]int{"expired": 1, "refused": 1}, d.Counts)
	require.Empty(t, choice.Keep(chooseSpec, short[:1], nil, chooseAt.Add(2)).Chosen)
	require.Empty(t, choice.Keep(chooseSpec, nil, nil, chooseAt).Chosen)
}

// An instance chooses the same provider before and after the instances ahead have received their nodes. An offer on
// which the group has fewer nodes comes first.
func TestPlaceDoesNotDependOnHoldsOfInstancesAhead(t *testing.T) {
	for r := range testkit.Cases(t) {
		var all []choice.Candidate
		for n := range 2 + r.IntN(5) {
			all = append(all, candidate(fmt.Sprintf("p%02d", n), 1, func(c *choice.Candidate) {
				c.Offer.MaxNodes = 1 + r.IntN(3)
			}))
		}
		choose := func(ahead int) string {
			return choice.Choose(chooseSpec, all, nil, choice.Rank{Ahead: ahead, Name: "edge"}, chooseAt).Chosen
		}
		places := 0
		for _, room := range choice.Room(chooseSpec, all, chooseAt) {
			places += room
		}
		last := choose(places - 1)
		for left := places - 1; left > 0; left-- {
			require.Equal(t, last, choose(left))
			first := choose(0)
			for n := range all {
				if all[n].Offer.Provider == first {
					all[n].Take(1, chooseSpec.Shape)
					all[n].Own++
				}
			}
		}
		require.Equal(t, last, choose(0))
	}
}
