package fleet

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
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

// parts are what speaks for a candidate, by weight, and score is their sum.
func (s *Selection) parts(c Candidate, price, lowest float64) (parts map[string]float64, score float64) {
	if s == nil {
		return nil, 0
	}
	parts = map[string]float64{}
	add := func(name string, weight, part float64) {
		if weight > 0 {
			parts[name] = fourDigits(weight * part)
			score += parts[name]
		}
	}
	cheap, warm, near, own := 1.0, 0.0, 0.0, float64(c.Own)
	if price > 0 {
		cheap = lowest / price
	}
	if c.Warm {
		warm = 1
	}
	if ms := float64(c.Offer.LatencyMilliseconds); ms > 0 {
		near = 1 / (1 + ms/halfLatency)
	}
	add("price", s.Price, cheap)
	add("warm", s.Warm, warm)
	add("latency", s.Latency, near)
	add("spread", s.Spread, 1/(1+own))
	add("pack", s.Pack, own/(1+own))
	add("failures", s.Failures, 1/(1+c.Failures))
	return parts, fourDigits(score)
}

// fourDigits keeps what is the same for people the same for comparisons.
func fourDigits(f float64) float64 { return math.Round(f*1e4) / 1e4 }

// weigh scores the candidates that fit.
func (s *Selection) weigh(judged []judgement) {
	lowest := math.Inf(1)
	for _, j := range judged {
		if j.verdict.Fits {
			lowest = min(lowest, j.verdict.Price)
		}
	}
	for n := range judged {
		if v := &judged[n].verdict; v.Fits {
			judged[n].reweigh(s, lowest)
			if s != nil {
				v.Reason = shorten.To(fmt.Sprintf("%s, score %.4g: %s", v.Reason, v.Score, inWords(v.Parts)), maxReason)
			}
		}
	}
}

func (j *judgement) reweigh(s *Selection, lowest float64) {
	j.lowest = lowest
	j.verdict.Parts, j.verdict.Score = s.parts(j.candidate, j.verdict.Price, lowest)
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

// oneByOne returns the place in judged of the choice that is left when those ahead have chosen, one after the other.
func (s *Selection) oneByOne(spec GroupSpec, judged []judgement, rank Rank) int {
	tried := make([]judgement, 0, len(judged))
	room := make([]int, 0, len(judged))
	for _, j := range judged {
		if j.verdict.Fits {
			tried, room = append(tried, j), append(room, j.candidate.Room(spec.Shape))
		}
	}
	chosen := 0
	for range rank.Ahead + 1 {
		next := -1
		for n := range tried {
			if room[n] > 0 && (next < 0 || prefer(tried[n].verdict, tried[next].verdict, rank) < 0) {
				next = n
			}
		}
		if next < 0 {
			return 0
		}
		room[next]--
		tried[next].candidate.Own++
		tried[next].reweigh(s, tried[next].lowest)
		chosen = next
	}
	return chosen
}

// prefer orders fitting verdicts; equal ones in an order that differs between groups.
func prefer(a, b Verdict, rank Rank) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Price, b.Price),
		cmp.Compare(turn(rank.Name, a.Provider), turn(rank.Name, b.Provider)))
}
