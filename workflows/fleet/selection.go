package fleet

import (
	"fmt"
	"math"
	"strings"
)

// Selection weighs what speaks for a provider, among those that can take the node. Each part is between 0 and 1, times
// its weight, and the provider with the largest sum is chosen; the cheaper one of equals. Without a Selection the price
// alone decides.
type Selection struct {
	// Price favours the cheaper node: the lowest price there is, divided by the provider's.
	Price float64 `json:"price,omitempty" validate:"gte=0,lte=100"`
	// Warm favours a peering that is there: 1, else 0.
	Warm float64 `json:"warm,omitempty" validate:"gte=0,lte=100"`
	// Latency favours the closer provider: 1 at none, a half at 50 ms; 0 for an offer without latencyMilliseconds.
	Latency float64 `json:"latency,omitempty" validate:"gte=0,lte=100"`
	// Spread favours the provider with fewer nodes of the group: 1 for none, a half for one, a third for two.
	Spread float64 `json:"spread,omitempty" validate:"gte=0,lte=100"`
	// Pack is the opposite of Spread: 0 for none, a half for one, two thirds for two.
	Pack float64 `json:"pack,omitempty" validate:"gte=0,lte=100"`
	// Failures favours the provider that has failed the group less: 1 for no failure, a half for one of just now. A
	// failure counts half as much every 30 minutes.
	Failures float64 `json:"failures,omitempty" validate:"gte=0,lte=100"`
}

// Empty reports whether nothing is weighed.
func (s Selection) Empty() bool { return s == Selection{} }

// halfLatency is the latency, in milliseconds, that counts half.
const halfLatency = 50

// part is what speaks for a candidate in one respect, between 0 and 1.
type part struct {
	name          string
	weight, value float64
}

// worth is what it counts in a score.
func (p part) worth() float64 { return fourDigits(p.weight * p.value) }

// parts are what speaks for a candidate where the group has own nodes.
func (q *question) parts(j *judgement, own int) [6]part {
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

// fourDigits keeps what is the same for people the same for comparisons.
func fourDigits(f float64) float64 { return math.Round(f*1e4) / 1e4 }

// weigh scores a candidate that fits, where the group has own nodes.
func (q *question) weigh(j *judgement, own int) {
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
	for _, name := range sortedKeys(parts) {
		words = append(words, fmt.Sprintf("%s %.4g", name, parts[name]))
	}
	return strings.Join(words, ", ")
}

// counts reports whether the choice of one instance changes what speaks for the next one's.
func (s *Selection) counts() bool { return s != nil && (s.Spread > 0 || s.Pack > 0) }
