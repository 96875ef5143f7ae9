package fleet_test

import (
	"fmt"
	"math/rand"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

func weighing(s fleet.Selection) fleet.GroupSpec {
	spec := chooseSpec
	spec.Selection = &s
	return spec
}

func TestSelectionWeighs(t *testing.T) {
	warm := func(c *fleet.Candidate) { c.Warm = true }
	own := func(n int) func(*fleet.Candidate) { return func(c *fleet.Candidate) { c.Own = n } }
	ms := func(n int) func(*fleet.Candidate) {
		return func(c *fleet.Candidate) { c.Offer.LatencyMilliseconds = n }
	}
	failed := func(w float64) func(*fleet.Candidate) { return func(c *fleet.Candidate) { c.Failures = w } }
	for name, c := range map[string]struct {
		by     fleet.Selection
		of     []fleet.Candidate
		want   string
		reason string
	}{
		"price": {fleet.Selection{Price: 1}, []fleet.Candidate{candidate("a", 2), candidate("b", 1)}, "b",
			"fits at price 1 USD, score 1: price 1"},
		"for nothing": {fleet.Selection{Price: 1}, []fleet.Candidate{candidate("a", 0.1), candidate("b", 0)}, "b",
			"fits at price 0 USD, score 1: price 1"},
		"a peering is worth more than half the price": {fleet.Selection{Price: 1, Warm: 0.6},
			[]fleet.Candidate{candidate("a", 2, warm), candidate("b", 1)}, "a",
			"fits at price 2 USD, score 1.1: price 0.5, warm 0.6"},
		"or less": {fleet.Selection{Price: 1, Warm: 0.4}, []fleet.Candidate{candidate("a", 2, warm), candidate("b", 1)}, "b",
			"fits at price 1 USD, score 1: price 1, warm 0"},
		"latency": {fleet.Selection{Latency: 1}, []fleet.Candidate{candidate("a", 1, ms(50)), candidate("b", 2, ms(10))}, "b",
			"fits at price 2 USD, score 0.8333: latency 0.8333"},
		"unknown latency": {fleet.Selection{Latency: 1},
			[]fleet.Candidate{candidate("a", 1), candidate("b", 2, ms(900))}, "b",
			"fits at price 2 USD, score 0.0526: latency 0.0526"},
		"spread": {fleet.Selection{Spread: 1}, []fleet.Candidate{candidate("a", 1, own(2)), candidate("b", 2, own(1))}, "b",
			"fits at price 2 USD, score 0.5: spread 0.5"},
		"pack": {fleet.Selection{Pack: 1}, []fleet.Candidate{candidate("a", 1), candidate("b", 2, own(1))}, "b",
			"fits at price 2 USD, score 0.5: pack 0.5"},
		"failures": {fleet.Selection{Price: 1, Failures: 2},
			[]fleet.Candidate{candidate("a", 1, failed(1)), candidate("b", 1.2)}, "b",
			"fits at price 1.2 USD, score 2.833: failures 2, price 0.8333"},
		"the cheaper of equals": {fleet.Selection{Spread: 1}, []fleet.Candidate{candidate("a", 2), candidate("b", 1)}, "b",
			"fits at price 1 USD, score 1: spread 1"},
		"what does not fit is no measure of price": {fleet.Selection{Price: 1}, []fleet.Candidate{candidate("a", 2),
			candidate("b", 1, func(c *fleet.Candidate) { c.Offer.Labels = nil })}, "a", "fits at price 2 USD, score 1: price 1"},
	} {
		t.Run(name, func(t *testing.T) {
			d := fleet.Choose(weighing(c.by), c.of, nil, fleet.Rank{Name: "g"}, chooseAt)
			require.Equal(t, c.want, d.Chosen)
			require.Equal(t, c.reason, d.Verdicts[0].Reason)
			sum := 0.0
			for _, part := range d.Verdicts[0].Parts {
				sum += part
			}
			require.InDelta(t, d.Verdicts[0].Score, sum, 1e-3)
		})
	}
}

// Instances of a burst choose before anything of it is booked: each sees those ahead of it where they will be.
func TestSelectionInABurst(t *testing.T) {
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
			four := func(c *fleet.Candidate) { c.Free = amounts("cpu", "8", "memory", "16Gi", "pods", "200") }
			candidates := []fleet.Candidate{candidate("a", 1, four), candidate("b", 1, four), candidate("c", 3, four)}
			taken := map[string]int{}
			for ahead := range 8 {
				taken[fleet.Choose(weighing(c.by), candidates, nil, fleet.Rank{Ahead: ahead, Name: "g", Number: ahead},
					chooseAt).Chosen]++
			}
			require.Equal(t, c.want, taken)
		})
	}
}

// Nothing but the input decides, and what is cut off by the shortlist does not change the choice.
func TestSelectionIsDeterministic(t *testing.T) {
	random := rand.New(rand.NewSource(7))
	all := fleet.Selection{Price: 1, Warm: 0.5, Latency: 0.3, Spread: 1, Pack: 0.1, Failures: 1}
	for range 200 {
		var candidates []fleet.Candidate
		for n := range 1 + random.Intn(fleet.MaxCandidates) {
			name, price := fmt.Sprintf("p%02d", n), float64(random.Intn(4))
			candidates = append(candidates, candidate(name, price, func(c *fleet.Candidate) {
				c.Own, c.Warm, c.Failures = random.Intn(3), random.Intn(2) == 0, float64(random.Intn(3))
				c.Offer.LatencyMilliseconds = random.Intn(100)
			}))
		}
		rank := fleet.Rank{Ahead: random.Intn(10), Name: "g", Number: random.Intn(50)}
		want := fleet.Choose(weighing(all), candidates, nil, rank, chooseAt)
		short, _ := fleet.Shortlist(weighing(all), candidates, nil, rank, chooseAt)
		require.Equal(t, want.Chosen, fleet.Choose(weighing(all), short, nil, rank, chooseAt).Chosen)
		random.Shuffle(len(candidates), func(i, j int) { candidates[i], candidates[j] = candidates[j], candidates[i] })
		require.Equal(t, want, fleet.Choose(weighing(all), candidates, nil, rank, chooseAt))
	}
}

func TestFailuresFade(t *testing.T) {
	at := func(ago ...time.Duration) (times []time.Time) {
		for _, d := range ago {
			times = append(times, chooseAt.Add(-d))
		}
		return times
	}
	require.Zero(t, fleet.Weight(nil, chooseAt))
	require.Equal(t, 1.0, fleet.Weight(at(0), chooseAt))
	require.Equal(t, 0.5, fleet.Weight(at(30*time.Minute), chooseAt))
	require.Equal(t, 1.75, fleet.Weight(at(time.Hour, 30*time.Minute, 0), chooseAt))
	require.Equal(t, 1.0, fleet.Weight(at(-time.Minute), chooseAt), "a clock that is ahead")
}

// A group remembers whom its attempts failed on, where it weighs that, and tells the drivers that it starts later.
func TestAGroupRemembersFailures(t *testing.T) {
	for name, weigh := range map[string]bool{"weighed": true, "not weighed": false} {
		t.Run(name, func(t *testing.T) {
			l := ledger(t)
			if weigh {
				changed := spec()
				changed.Selection = &fleet.Selection{Price: 1, Failures: 1}
				require.NoError(t, l.Operate(fleet.Configure, fleet.Request{Spec: changed}, t0))
			}
			require.NoError(t, operate(l, fleet.Grow, 1))
			l.Step(fleet.GroupInput{}, t0)
			e := l.Find(booked(1))
			tell := func(sequence, attempt int, on string, f *fleet.Failure, at time.Time) {
				l.Step(fleet.GroupInput{Views: []fleet.View{{
					Instance: e.Name, Generation: e.Driver.Generation, Sequence: sequence, Attempt: attempt, Failure: f,
					Phase: fleet.Peering, Offer: &fleet.Offer{Provider: on},
				}}}, at)
			}
			refused := fleet.NewFailure(fleet.CodeTimeout, "milan", "", "no answer")
			tell(1, 1, "milan", nil, t0)
			tell(2, 2, "turin", refused, t0.Add(time.Minute))
			tell(3, 3, "rome", refused, t0.Add(2*time.Minute)) // turin was full, for which nobody is blamed
			full := fleet.NewFailure(fleet.CodeNoCapacity, "rome", "", "full")
			tell(4, 4, "pisa", full, t0.Add(3*time.Minute))
			want := map[string][]time.Time(nil)
			if weigh {
				want = map[string][]time.Time{"milan": {t0.Add(time.Minute)}}
			}
			require.Equal(t, want, l.Failures)

			require.NoError(t, operate(l, fleet.Grow, 1))
			l.Step(fleet.GroupInput{}, t0.Add(4*time.Minute))
			next := l.Find(booked(2))
			in := l.DriverInput(fleet.Command{Driver: fleet.ScaleOut, Instance: next.Name, Generation: next.Driver.Generation})
			require.Equal(t, want, in.Failures)
		})
	}
}

// What is remembered has a bound: the last five of a provider, and three hours.
func TestFailuresAreBounded(t *testing.T) {
	l := ledger(t)
	changed := spec()
	changed.Selection = &fleet.Selection{Failures: 1}
	require.NoError(t, l.Operate(fleet.Configure, fleet.Request{Spec: changed}, t0))
	require.NoError(t, operate(l, fleet.Grow, 1))
	l.Step(fleet.GroupInput{}, t0)
	e := l.Find(booked(1))
	for n := range 8 {
		f := fleet.NewFailure(fleet.CodeRefused, "milan", "", fmt.Sprint("no ", n))
		l.Step(fleet.GroupInput{Views: []fleet.View{{Instance: e.Name, Generation: e.Driver.Generation, Sequence: n + 1,
			Attempt: n + 1, Failure: f, Phase: fleet.Peering, Offer: &fleet.Offer{Provider: "turin"}}}},
			t0.Add(time.Duration(n)*30*time.Minute))
	}
	at := func(n int) time.Time { return t0.Add(time.Duration(n) * 30 * time.Minute) }
	require.Equal(t, map[string][]time.Time{"milan": {at(3), at(4), at(5), at(6), at(7)}}, l.Failures)
	late := at(7 + 7)
	l.Step(fleet.GroupInput{Views: []fleet.View{{Instance: e.Name, Generation: e.Driver.Generation, Sequence: 9,
		Attempt: 9, Failure: fleet.NewFailure(fleet.CodeRefused, "turin", "", "no"), Phase: fleet.Peering,
		Offer: &fleet.Offer{Provider: "rome"}}}}, late)
	require.Equal(t, map[string][]time.Time{"turin": {late}}, l.Failures)
}
