package choice

import (
	"cmp"
	"encoding/json"
	"iter"
	"slices"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Limits of what a choice leaves in a history.
const (
	// MaxCandidates bounds a shortlist and the verdicts of a Decision.
	MaxCandidates = 20
	// MaxDecision bounds a Decision's JSON, in bytes.
	MaxDecision = 32 << 10
)

// Filter is one reason not to choose a candidate.
type Filter string

// The filters, in the order they are asked.
const (
	FilterExpired  Filter = "expired"  // the offer has ended
	FilterRefused  Filter = "refused"  // the provider is out for this instance
	FilterProvider Filter = "provider" // the group is of another provider
	FilterRefusing Filter = "refusing" // the provider refuses this cluster
	FilterCordoned Filter = "cordoned" // an operator cordoned the provider
	FilterSelector Filter = "selector" // its labels are not those the group selects
	FilterCurrency Filter = "currency" // its price is not comparable with the others'
	FilterSpending Filter = "spending" // it costs more than the group may spend on a node
	FilterNode     Filter = "node"     // the shape is larger than each node of the provider
	FilterFit      Filter = "fit"      // the shape is larger than what is free
	FilterMaxNodes Filter = "maxNodes" // it offers no more nodes
)

// Assessment is the judgement of a choice on one candidate.
type Assessment struct {
	Provider string `json:"provider"`
	Offer    string `json:"offer"`
	Epoch    string `json:"epoch,omitempty"`
	Fits     bool   `json:"fits"`
	// Filter is the first filter that took it out; empty when it fits.
	Filter Filter `json:"filter,omitempty"`
	// Reason is a sentence with figures, at most 300 characters.
	Reason string `json:"reason"`
	// Price is what a node costs there in an hour: without a Selection the fitting candidates are ordered by it.
	Price float64 `json:"price"`
	// Score is the sum of Parts, each the weight times what speaks for the candidate; only with a Selection.
	Score float64            `json:"score,omitempty"`
	Parts map[string]float64 `json:"parts,omitempty"`
}

// Decision is the record of one choice: enough to explain it later.
type Decision struct {
	// Chosen is the provider's id; empty when nothing fits.
	Chosen string `json:"chosen,omitempty"`
	// Assessments are ordered: the chosen one, the other fitting ones from best to worst, then those filtered out.
	Assessments []Assessment `json:"assessments,omitempty"`
	// Counts says how many candidates each filter took out, all candidates counted.
	Counts map[string]int `json:"counts,omitempty"`
	// Considered is the number of candidates; Assessments may have been cut.
	Considered int `json:"considered"`
	// Full says that nothing fits now, and that something that is full could.
	Full bool `json:"full,omitempty"`
}

// Rank spreads instances that choose at the same time over the offers.
type Rank struct {
	// Ahead is how many of the group were started before and have not chosen yet.
	Ahead int `json:"ahead,omitempty"`
	// Name is the group's: it decides in which order equal offers take turns.
	Name string `json:"name"`
}

// Choose picks the provider of an instance's next attempt: of the candidates that pass every filter the cheapest, or
// the one that the group's Selection scores highest, with a place that those ahead leave, and of equal ones the one
// whose turn it is. refused are the providers that are out. It computes only, and the order of candidates does not
// matter.
func Choose(spec fleet.InstanceSpec, candidates []Candidate, refused []string, rank Rank, now time.Time) Decision {
	q := judge(spec, candidates, refused, now)
	return q.decide(q.best(q.choice(rank)))
}

// Keep judges a shortlist again, a moment later, and keeps its order: the first that still fits is chosen.
func Keep(spec fleet.InstanceSpec, short []Candidate, refused []string, now time.Time) Decision {
	q := judge(spec, short, refused, now)
	slices.SortStableFunc(q.judged, func(a, b judgement) int {
		return cmp.Compare(min(len(a.filter), 1), min(len(b.filter), 1))
	})
	return q.decide(slices.Values(q.judged))
}

// decide records the choice of the first, when that fits.
func (q *question) decide(inOrder iter.Seq[judgement]) Decision {
	d := Decision{Considered: len(q.judged), Counts: countFilters(q.judged)}
	for j := range inOrder {
		if d.Assessments = append(d.Assessments, q.verdict(j)); len(d.Assessments) == MaxCandidates {
			break
		}
	}
	if len(d.Assessments) > 0 && d.Assessments[0].Fits {
		d.Chosen = d.Assessments[0].Provider
	} else {
		d.Full = q.full()
	}
	for len(d.Assessments) > 1 && d.size() > MaxDecision {
		d.Assessments = d.Assessments[:len(d.Assessments)-1]
	}
	return d
}

// Shortlist is the at most MaxCandidates candidates that Choose would put first, in its order, and how many candidates
// each filter took out of all.
func Shortlist(spec fleet.InstanceSpec, candidates []Candidate, refused []string, rank Rank,
	now time.Time) ([]Candidate, map[string]int) {
	q := judge(spec, candidates, refused, now)
	var short []Candidate
	for j := range q.best(q.choice(rank)) {
		if short = append(short, *j.candidate); len(short) == MaxCandidates {
			break
		}
	}
	return short, countFilters(q.judged)
}

// maxReason bounds Verdict.Reason.
const maxReason = 300

func (d Decision) size() int {
	b, err := json.Marshal(d)
	if err != nil { // a price that is no number: sources refuse it; keep the record small rather than whole
		return MaxDecision + 1
	}
	return len(b)
}
