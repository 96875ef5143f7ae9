package fleet

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Limits of what a choice leaves in a history.
const (
	// MaxCandidates bounds a shortlist and the verdicts of a Decision.
	MaxCandidates = 20
	// MaxDecision bounds a Decision's JSON, in bytes.
	MaxDecision = 32 << 10
)

// Candidate is an offer with what is known to be taken of it.
type Candidate struct {
	Offer Offer `json:"offer"`
	// Free is what is left after holds, as far as known; nil means all that is lendable. A resource that is missing in
	// it is used up, so empty is not nil, in JSON neither.
	Free corev1.ResourceList `json:"free"`
	// Nodes is how many nodes hold a share of the offer, as far as known.
	Nodes int `json:"nodes,omitempty"`
}

// Filter is one reason not to choose a candidate.
type Filter string

// The filters, in the order they are asked.
const (
	FilterExpired  Filter = "expired"  // the offer has ended
	FilterRefused  Filter = "refused"  // the provider is out for this instance
	FilterSelector Filter = "selector" // its labels are not those the group selects
	FilterFit      Filter = "fit"      // the shape is larger than what is free
	FilterMaxNodes Filter = "maxNodes" // it lends no more nodes
)

// Verdict is what a choice thinks of one candidate.
type Verdict struct {
	Provider string `json:"provider"`
	Offer    string `json:"offer"`
	Epoch    string `json:"epoch,omitempty"`
	Fits     bool   `json:"fits"`
	// Filter is the first filter that took it out; empty when it fits.
	Filter Filter `json:"filter,omitempty"`
	// Reason is a sentence with figures, at most 300 characters.
	Reason string `json:"reason"`
	// Price is what the fitting candidates are ordered by.
	Price float64 `json:"price"`
}

// Decision is the record of one choice: enough to explain it later.
type Decision struct {
	// Chosen is the provider's id; empty when nothing fits.
	Chosen string `json:"chosen,omitempty"`
	// Verdicts are ordered: the chosen one, the other fitting ones from best to worst, then those filtered out.
	Verdicts []Verdict `json:"verdicts,omitempty"`
	// Counts says how many candidates each filter took out, all candidates counted.
	Counts map[string]int `json:"counts,omitempty"`
	// Considered is the number of candidates; Verdicts may have been cut.
	Considered int `json:"considered"`
}

// Choose picks the provider of an instance's next attempt: of the candidates that pass every filter the cheapest, and of
// equally cheap ones the first by provider id. refused maps providers that are out to the reason. It computes only, and
// the order of candidates does not matter.
func Choose(spec GroupSpec, candidates []Candidate, refused map[string]string, now time.Time) Decision {
	judged := judge(spec, candidates, refused, now)
	d := Decision{Counts: countFilters(judged), Considered: len(judged)}
	for _, j := range judged[:min(len(judged), MaxCandidates)] {
		d.Verdicts = append(d.Verdicts, j.verdict)
	}
	if len(d.Verdicts) > 0 && d.Verdicts[0].Fits {
		d.Chosen = d.Verdicts[0].Provider
	}
	for len(d.Verdicts) > 1 && d.size() > MaxDecision {
		d.Verdicts = d.Verdicts[:len(d.Verdicts)-1]
	}
	return d
}

// Shortlist is the at most MaxCandidates candidates that Choose would put first, in its order, and how many candidates
// each filter took out of all.
func Shortlist(spec GroupSpec, candidates []Candidate, refused map[string]string, now time.Time) ([]Candidate, map[string]int) {
	judged := judge(spec, candidates, refused, now)
	var short []Candidate
	for _, j := range judged[:min(len(judged), MaxCandidates)] {
		short = append(short, j.candidate)
	}
	return short, countFilters(judged)
}

type judgement struct {
	candidate Candidate
	verdict   Verdict
}

func judge(spec GroupSpec, candidates []Candidate, refused map[string]string, now time.Time) []judgement {
	selector, broken := labels.Everything(), error(nil)
	if spec.Selector != nil {
		selector, broken = metav1.LabelSelectorAsSelector(spec.Selector)
	}
	judged := make([]judgement, 0, len(candidates))
	for _, c := range candidates {
		filter, reason := c.verdict(spec, selector, broken, refused, now)
		v := Verdict{
			Provider: c.Offer.Provider, Offer: c.Offer.Name, Epoch: c.Offer.Epoch, Price: c.Offer.Price,
			Fits: filter == "", Filter: filter, Reason: shorten(reason, maxReason),
		}
		judged = append(judged, judgement{candidate: c, verdict: v})
	}
	slices.SortStableFunc(judged, func(a, b judgement) int { return better(a.verdict, b.verdict) })
	return judged
}

// better orders verdicts: fitting first, then by price, then by names, so that equal input gives equal choices.
func better(a, b Verdict) int {
	if a.Fits != b.Fits {
		if a.Fits {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(a.Price, b.Price), cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Offer, b.Offer))
}

func (c Candidate) verdict(spec GroupSpec, selector labels.Selector, broken error, refused map[string]string, now time.Time) (Filter, string) {
	o := c.Offer
	if o.Expires != nil && !now.Before(*o.Expires) {
		return FilterExpired, "the offer expired at " + o.Expires.UTC().Format(time.RFC3339)
	}
	if why, ok := refused[o.Provider]; ok {
		return FilterRefused, "refused before: " + why
	}
	if broken != nil {
		return FilterSelector, fmt.Sprintf("the group's selector cannot be used: %v", broken)
	}
	if !selector.Matches(labels.Set(o.Labels)) {
		return FilterSelector, fmt.Sprintf("labels {%s} do not match the group's selector %s", labels.Set(o.Labels), selector)
	}
	if lacks := c.lacks(spec.Shape); len(lacks) > 0 {
		return FilterFit, strings.Join(lacks, "; ")
	}
	if o.MaxNodes > 0 && c.Nodes >= o.MaxNodes {
		return FilterMaxNodes, fmt.Sprintf("its maxNodes is %d, %d taken", o.MaxNodes, c.Nodes)
	}
	return "", fmt.Sprintf("fits at price %g", o.Price)
}

// lacks says which resources of the shape are not free. As with holds, an offer that does not speak of ephemeral storage
// does not limit it; any other resource it does not speak of is not lent.
func (c Candidate) lacks(shape corev1.ResourceList) []string {
	free := c.Free
	if free == nil {
		free = c.Offer.Lendable
	}
	var lacks []string
	for _, name := range sortedNames(shape) {
		want := shape[name]
		if want.Sign() <= 0 {
			continue
		}
		lent, lends := c.Offer.Lendable[name]
		if !lends && name == corev1.ResourceEphemeralStorage {
			continue
		}
		have := free[name]
		switch {
		case !lends:
			lacks = append(lacks, fmt.Sprintf("needs %s %s, none is lent", name, want.String()))
		case want.Cmp(have) > 0:
			lacks = append(lacks, fmt.Sprintf("needs %s %s, %s of %s is free", name, want.String(), have.String(), lent.String()))
		}
	}
	return lacks
}

func countFilters(judged []judgement) map[string]int {
	counts := map[string]int{}
	for _, j := range judged {
		if !j.verdict.Fits {
			counts[string(j.verdict.Filter)]++
		}
	}
	return counts
}

const maxReason = 300

func shorten(s string, limit int) string {
	if r := []rune(s); len(r) > limit {
		return string(r[:limit-1]) + "…"
	}
	return s
}

func (d Decision) size() int {
	b, err := json.Marshal(d)
	if err != nil { // a price that is no number: sources refuse it; keep the record small rather than whole
		return MaxDecision + 1
	}
	return len(b)
}
