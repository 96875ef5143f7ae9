package choice

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// halfLatency is the latency, in milliseconds, that halves the value of the latency part.
const halfLatency = 50

// unpriced is a factor: an offer without a price is scored as if its price were unpriced times the lowest price. This
// makes the offer much cheaper than all offers with a price, and the scores of the other offers still differ by their
// prices.
const unpriced = 0.1

// part is the value of a candidate for one property, between 0 and 1, with the weight of this property.
type part struct {
	name          string
	weight, value float64
}

// worth returns the part's contribution to a score.
func (p part) worth() float64 { return fourDigits(p.weight * p.value) }

// parts returns the values of a candidate. own is the number of the group's nodes at its provider.
func (q *question) parts(j *evaluation, own int) [6]part {
	s, c := q.spec.Selection, j.candidate
	cheap, warm, near, nodes := 1.0, 0.0, 0.0, float64(own)
	if j.price > 0 {
		cheap = q.lowest / j.price
	}
	if c.Warm {
		warm = 1
	}
	if ms := float64(c.Offer.LatencyMilliseconds); ms > 0 {
		near = 1 / (1 + ms/halfLatency)
	}
	return [...]part{{"price", s.Price, cheap}, {"warm", s.Warm, warm}, {"latency", s.Latency, near},
		{"spread", s.Spread, 1 / (1 + nodes)}, {"pack", s.Pack, nodes / (1 + nodes)},
		{"failures", s.Failures, 1 / (1 + c.Failures)}}
}

// fourDigits rounds a number, so that values that users see as equal also compare as equal.
func fourDigits(f float64) float64 { return math.Round(f*1e4) / 1e4 }

// weigh computes the score of a fitting candidate. own is the number of the group's nodes at its provider.
func (q *question) weigh(j *evaluation, own int) {
	if q.spec.Selection == nil || j.filter != "" {
		return
	}
	sum := 0.0
	for _, p := range q.parts(j, own) {
		sum += p.worth()
	}
	j.score = fourDigits(sum)
}

func inWords(parts map[string]float64) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		words = append(words, fmt.Sprintf("%s %.4g", name, parts[name]))
	}
	return strings.Join(words, ", ")
}

// scoresDependOnNodes reports whether the choice of one instance changes the scores for the next instance.
func scoresDependOnNodes(s *fleet.Selection) bool { return s != nil && (s.Spread > 0 || s.Pack > 0) }

// failuresHalf is the time in which the weight of a failure halves.
const failuresHalf = 30 * time.Minute

// Weight returns the sum of the weights that past failures have now. A new failure has the weight 1, which halves
// every 30 minutes.
func Weight(failures []time.Time, now time.Time) (sum float64) {
	for _, at := range failures {
		sum += math.Exp2(-max(0, now.Sub(at).Seconds()) / failuresHalf.Seconds())
	}
	return fourDigits(sum)
}
