package choice

import (
	"cmp"
	"encoding/json"
	"iter"
	"slices"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// These limits bound the size of a choice that is recorded in a workflow history.
const (
	// MaxCandidates bounds a shortlist and the assessments of a Decision.
	MaxCandidates = 20
	// MaxDecision bounds the JSON of a Decision, in bytes.
	MaxDecision = 32 << 10
)

// Filter names one reason not to choose a candidate.
type Filter string

// These constants are the filters, in the order in which they are checked.
const (
	FilterExpired  Filter = "expired"  // the offer has expired
	FilterRefused  Filter = "refused"  // the provider is excluded for this instance
	FilterProvider Filter = "provider" // the group uses only one provider, and this is another
	FilterRefusing Filter = "refusing" // the provider refuses this cluster
	FilterCordoned Filter = "cordoned" // an operator cordoned the provider
	FilterSelector Filter = "selector" // the offer's labels do not match the group's selector
	// FilterArchitecture excludes an offer whose nodes do not have the group's architecture.
	FilterArchitecture Filter = "architecture"

	FilterCurrency Filter = "currency" // the offer's price is in another currency
	FilterSpending Filter = "spending" // a node costs more than the group may spend on it
	FilterNode     Filter = "node"     // the shape is larger than each node of the provider
	FilterFit      Filter = "fit"      // the shape is larger than the free capacity
	FilterMaxNodes Filter = "maxNodes" // the provider already has maxNodes nodes
)

// Assessment records how a choice has evaluated one candidate.
type Assessment struct {
	Provider string `json:"provider"`
	Offer    string `json:"offer"`
	Epoch    string `json:"epoch,omitempty"`
	Fits     bool   `json:"fits"`
	// Filter names the first filter that excluded the candidate; empty when it fits.
	Filter Filter `json:"filter,omitempty"`
	// Reason is a text with figures, of at most 300 characters.
	Reason string `json:"reason"`
	// Price is the hourly price of a node on the offer. If the group has no Selection, the fitting candidates are
	// ordered by price.
	Price float64 `json:"price"`
	// Score is the sum of Parts. Each part is the weight of a property times the candidate's value for this property.
	// Score and Parts are set only if the group has a Selection.
	Score float64            `json:"score,omitempty"`
	Parts map[string]float64 `json:"parts,omitempty"`
}

// Decision records one choice in enough detail to explain it later.
type Decision struct {
	// Chosen is the provider's id; empty when nothing fits.
	Chosen string `json:"chosen,omitempty"`
	// Assessments lists the chosen candidate, then the other fitting candidates from best to worst, and then the
	// excluded candidates.
	Assessments []Assessment `json:"assessments,omitempty"`
	// Counts contains the number of candidates that each filter excluded, among all candidates.
	Counts map[string]int `json:"counts,omitempty"`
	// Considered is the number of candidates. Assessments may be shorter.
	Considered int `json:"considered"`
	// Full reports that no candidate fits now, but at least one would fit if all its offered capacity were free.
	Full bool `json:"full,omitempty"`
}

// Rank is the position of an instance among the instances that choose at the same time. With it they choose different
// offers.
type Rank struct {
	// Ahead is the number of the group's instances that started earlier and have not chosen a provider yet.
	Ahead int `json:"ahead,omitempty"`
	// Name is the group's name. It determines in which order the group's instances use equal offers.
	Name string `json:"name"`
}

// Choose selects the provider of an instance's next attempt. Among the candidates that pass every filter it chooses
// the cheapest, or the candidate with the highest score of the group's Selection. It first assigns capacity to the
// instances that choose earlier (rank.Ahead). If candidates are equal, the instances use them in rotation. refused
// lists the excluded providers. Choose is pure, and the order of the candidates does not matter.
func Choose(spec fleet.InstanceSpec, candidates []Candidate, refused []string, rank Rank, now time.Time) Decision {
	q := evaluate(spec, candidates, refused, now)
	return q.decide(q.best(q.choice(rank)))
}

// Keep evaluates the candidates of a recent shortlist again, and keeps their order. It chooses the first candidate
// that still fits.
func Keep(spec fleet.InstanceSpec, short []Candidate, refused []string, now time.Time) Decision {
	q := evaluate(spec, short, refused, now)
	slices.SortStableFunc(q.evaluations, func(a, b evaluation) int {
		return cmp.Compare(min(len(a.filter), 1), min(len(b.filter), 1))
	})
	return q.decide(slices.Values(q.evaluations))
}

// decide returns the Decision for the evaluations in this order. It chooses the first candidate if this candidate
// fits.
func (q *question) decide(inOrder iter.Seq[evaluation]) Decision {
	d := Decision{Considered: len(q.evaluations), Counts: countFilters(q.evaluations)}
	for j := range inOrder {
		if d.Assessments = append(d.Assessments, q.assessment(j)); len(d.Assessments) == MaxCandidates {
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

// Shortlist returns the candidates that Choose would put first, in the same order. It returns at most MaxCandidates
// candidates. It also returns the number of candidates that each filter excluded.
func Shortlist(spec fleet.InstanceSpec, candidates []Candidate, refused []string, rank Rank,
	now time.Time) ([]Candidate, map[string]int) {
	q := evaluate(spec, candidates, refused, now)
	var short []Candidate
	for j := range q.best(q.choice(rank)) {
		if short = append(short, *j.candidate); len(short) == MaxCandidates {
			break
		}
	}
	return short, countFilters(q.evaluations)
}

// maxReason bounds Assessment.Reason.
const maxReason = 300

func (d Decision) size() int {
	b, err := json.Marshal(d)
	if err != nil { // a price is NaN or infinite, although sources reject such prices: cut the record
		return MaxDecision + 1
	}
	return len(b)
}
