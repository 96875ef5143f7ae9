package choice_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/choice"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

func weighing(s fleet.Selection) fleet.InstanceSpec {
	spec := chooseSpec
	spec.Selection = &s
	return spec
}

func TestSelectionWeighsItsCriteria(t *testing.T) {
	warm := func(c *choice.Candidate) { c.Warm = true }
	own := func(n int) func(*choice.Candidate) { return func(c *choice.Candidate) { c.Own = n } }
	ms := func(n int) func(*choice.Candidate) {
		return func(c *choice.Candidate) { c.Offer.LatencyMilliseconds = n }
	}
	failed := func(w float64) func(*choice.Candidate) { return func(c *choice.Candidate) { c.Failures = w } }
	for name, c := range map[string]struct {
		by     fleet.Selection
		of     []choice.Candidate
		want   string
		reason string
	}{
		"price": {fleet.Selection{Price: 1}, []choice.Candidate{candidate("a", 2), candidate("b", 1)}, "b",
			"fits at price 1 USD, score 1: price 1"},
		"prices below one": {fleet.Selection{Price: 1, Warm: 0.5},
			[]choice.Candidate{candidate("a", 0.5, warm), candidate("b", 0.1)}, "b",
			"fits at price 0.1 USD, score 1: price 1, warm 0"},
		"a millisecond": {fleet.Selection{Latency: 1}, []choice.Candidate{candidate("a", 1, ms(2)), candidate("b", 2, ms(1))},
			"b", "fits at price 2 USD, score 0.9804: latency 0.9804"},
		"for nothing": {fleet.Selection{Price: 1}, []choice.Candidate{candidate("a", 0.1), candidate("b", 0)}, "b",
			"fits at price 0 USD, score 1: price 1"},
		"a peering is worth more than half the price": {fleet.Selection{Price: 1, Warm: 0.6},
			[]choice.Candidate{candidate("a", 2, warm), candidate("b", 1)}, "a",
			"fits at price 2 USD, score 1.1: price 0.5, warm 0.6"},
		"or less": {fleet.Selection{Price: 1, Warm: 0.4}, []choice.Candidate{candidate("a", 2, warm), candidate("b", 1)}, "b",
			"fits at price 1 USD, score 1: price 1, warm 0"},
		"latency": {fleet.Selection{Latency: 1}, []choice.Candidate{candidate("a", 1, ms(50)), candidate("b", 2, ms(10))},
			"b", "fits at price 2 USD, score 0.8333: latency 0.8333"},
		"unknown latency": {fleet.Selection{Latency: 1},
			[]choice.Candidate{candidate("a", 1), candidate("b", 2, ms(900))}, "b",
			"fits at price 2 USD, score 0.0526: latency 0.0526"},
		"spread": {fleet.Selection{Spread: 1}, []choice.Candidate{candidate("a", 1, own(2)), candidate("b", 2, own(1))}, "b",
			"fits at price 2 USD, score 0.5: spread 0.5"},
		"pack": {fleet.Selection{Pack: 1}, []choice.Candidate{candidate("a", 1), candidate("b", 2, own(1))}, "b",
			"fits at price 2 USD, score 0.5: pack 0.5"},
		"failures": {fleet.Selection{Price: 1, Failures: 2},
			[]choice.Candidate{candidate("a", 1, failed(1)), candidate("b", 1.2)}, "b",
			"fits at price 1.2 USD, score 2.833: failures 2, price 0.8333"},
		"the cheaper of equals": {fleet.Selection{Spread: 1}, []choice.Candidate{candidate("a", 2), candidate("b", 1)}, "b",
			"fits at price 1 USD, score 1: spread 1"},
		"what does not fit is no measure of price": {fleet.Selection{Price: 1}, []choice.Candidate{candidate("a", 2),
			candidate("b", 1, func(c *choice.Candidate) { c.Offer.Labels = nil })}, "a",
			"fits at price 2 USD, score 1: price 1"},
	} {
		t.Run(name, func(t *testing.T) {
			d := choice.Choose(weighing(c.by), c.of, nil, choice.Rank{Name: "g"}, chooseAt)
			require.Equal(t, c.want, d.Chosen)
			require.Equal(t, c.reason, d.Assessments[0].Reason)
			sum := 0.0
			for _, part := range d.Assessments[0].Parts {
				sum += part
			}
			require.InDelta(t, d.Assessments[0].Score, sum, 1e-3)
		})
	}
}

// The instances of a burst choose before the first hold is booked. Each choice assumes that the instances that chose
// earlier already have their nodes.
func TestSelectionAssumesNodesOfInstancesAhead(t *testing.T) {
	for name, c := range map[string]struct {
		by   fleet.Selection
		want map[string]int
	}{
		"spread":            {fleet.Selection{Spread: 1}, map[string]int{"a": 3, "b": 3, "c": 2}},
		"spread, but cheap": {fleet.Selection{Price: 10, Spread: 1}, map[string]int{"a": 4, "b": 4}},
		"pack":              {fleet.Selection{Pack: 1}, map[string]int{"a": 4, "b": 4}},
		"price":             {fleet.Selection{Price: 1}, map[string]int{"a": 4, "b": 4}},
	} {
		t.Run(name, func(t *testing.T) {
			four := func(c *choice.Candidate) { c.Free = amounts("cpu", "8", "memory", "16Gi", "pods", "200") }
			candidates := []choice.Candidate{candidate("a", 1, four), candidate("b", 1, four), candidate("c", 3, four)}
			taken := map[string]int{}
			for ahead := range 8 {
				taken[choice.Choose(weighing(c.by), candidates, nil, choice.Rank{Ahead: ahead, Name: "g"},
					chooseAt).Chosen]++
			}
			require.Equal(t, c.want, taken)
		})
	}
}

// The choice depends only on the input. Candidates that the shortlist leaves out do not change the choice.
func TestSelectionIsDeterministic(t *testing.T) {
	all := fleet.Selection{Price: 1, Warm: 0.5, Latency: 0.3, Spread: 1, Pack: 0.1, Failures: 1}
	for random := range testkit.Cases(t) {
		var candidates []choice.Candidate
		for n := range 1 + random.IntN(choice.MaxCandidates) {
			name, price := fmt.Sprintf("p%02d", n), float64(random.IntN(4))
			candidates = append(candidates, candidate(name, price, func(c *choice.Candidate) {
				c.Own, c.Warm, c.Failures = random.IntN(3), random.IntN(2) == 0, float64(random.IntN(3))
				c.Offer.LatencyMilliseconds = random.IntN(100)
			}))
		}
		rank := choice.Rank{Ahead: random.IntN(10), Name: "g"}
		want := choice.Choose(weighing(all), candidates, nil, rank, chooseAt)
		short, _ := choice.Shortlist(weighing(all), candidates, nil, rank, chooseAt)
		require.Equal(t, want.Chosen, choice.Keep(weighing(all), short, nil, chooseAt).Chosen)
		random.Shuffle(len(candidates), func(i, j int) { candidates[i], candidates[j] = candidates[j], candidates[i] })
		require.Equal(t, want, choice.Choose(weighing(all), candidates, nil, rank, chooseAt))
	}
}

func TestOldFailuresWeighLess(t *testing.T) {
	at := func(ago ...time.Duration) (times []time.Time) {
		for _, d := range ago {
			times = append(times, chooseAt.Add(-d))
		}
		return times
	}
	require.Zero(t, choice.Weight(nil, chooseAt))
	require.Equal(t, 1.0, choice.Weight(at(0), chooseAt))
	require.Equal(t, 0.5, choice.Weight(at(30*time.Minute), chooseAt))
	require.Equal(t, 1.75, choice.Weight(at(time.Hour, 30*time.Minute, 0), chooseAt))
	require.Equal(t, 1.0, choice.Weight(at(-time.Minute), chooseAt), "a clock that is ahead")
}

// In a burst, each instance chooses as if the earlier instances had received their nodes one after another.
func TestBurstChoosesLikeSuccessiveInstances(t *testing.T) {
	selections := []*fleet.Selection{nil, {Price: 1}, {Spread: 1}, {Spread: 0.5}, {Pack: 0.5}, {Warm: 1, Spread: 2},
		{Latency: 1, Pack: 1}, {Spread: 3, Pack: 1, Failures: 1}}
	for random := range testkit.Cases(t) {
		n := random.IntN(len(selections))
		spec := chooseSpec
		spec.Selection = selections[n]
		var candidates []choice.Candidate
		for n := range 1 + random.IntN(6) {
			price := float64(1 + n) // different prices, because offers with equal prices would alternate
			candidates = append(candidates, candidate(fmt.Sprint("p", n), price, func(c *choice.Candidate) {
				c.Own, c.Warm, c.Failures = random.IntN(3), random.IntN(2) == 0, float64(random.IntN(2))
				c.Offer.LatencyMilliseconds, c.Offer.MaxNodes = 20*random.IntN(3), random.IntN(4)
			}))
		}
		one := slices.Clone(candidates)
		for ahead := range 12 {
			at := choice.Rank{Ahead: ahead, Name: "g"}
			got := choice.Choose(spec, candidates, nil, at, chooseAt).Chosen
			want := choice.Choose(spec, one, nil, choice.Rank{Name: "g"}, chooseAt).Chosen
			if choice.Room(spec, one, chooseAt)[want] == 0 {
				break // all offers are full; the other instances try the best offer
			}
			require.Equal(t, want, got, "selection %d, %d ahead of %v", n, ahead, candidates)
			for i := range one {
				if one[i].Offer.Provider == want {
					one[i].Take(1, spec.Shape)
					one[i].Own++
				}
			}
		}
	}
}

// Candidates with equal scores alternate when a choice does not change the next score.
func TestEqualScoresAlternate(t *testing.T) {
	for _, by := range []fleet.Selection{{Price: 1}, {Warm: 1}, {Latency: 2}, {Failures: 1}} {
		chosen := map[string]int{}
		for ahead := range 4 {
			rank := choice.Rank{Ahead: ahead, Name: "g"}
			chosen[choice.Choose(weighing(by), []choice.Candidate{candidate("a", 1), candidate("b", 1)}, nil, rank,
				chooseAt).Chosen]++
		}
		require.Equal(t, map[string]int{"a": 2, "b": 2}, chosen)
	}
}

// With a weight for Pack, a burst fills one of several equal offers before the next. With a weight for Spread, it
// uses each offer.
func TestPackedBurstFillsOneOfferFirst(t *testing.T) {
	for by, want := range map[fleet.Selection]int{{Pack: 0.5}: 1, {Spread: 0.5}: 2} {
		chosen := map[string]int{}
		for ahead := range 2 {
			rank := choice.Rank{Ahead: ahead, Name: "g"}
			chosen[choice.Choose(weighing(by), []choice.Candidate{candidate("a", 1), candidate("b", 1)}, nil, rank,
				chooseAt).Chosen]++
		}
		require.Len(t, chosen, want)
	}
}
