package fleet

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
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
	FilterFit      Filter = "fit"      // the shape is larger than what is free
	FilterMaxNodes Filter = "maxNodes" // it offers no more nodes
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
	// Verdicts are ordered: the chosen one, the other fitting ones from best to worst, then those filtered out.
	Verdicts []Verdict `json:"verdicts,omitempty"`
	// Counts says how many candidates each filter took out, all candidates counted.
	Counts map[string]int `json:"counts,omitempty"`
	// Considered is the number of candidates; Verdicts may have been cut.
	Considered int `json:"considered"`
	// Full says that nothing fits now, and that something that is full could.
	Full bool `json:"full,omitempty"`
}

// Rank spreads instances that choose at the same time over the offers.
type Rank struct {
	// Ahead is how many of the group were started before and have not chosen yet.
	Ahead int `json:"ahead,omitempty"`
	// Name decides in which order equal offers take turns, Number whose turn it is.
	Name   string `json:"name"`
	Number int    `json:"number"`
}

// Choose picks the provider of an instance's next attempt: of the candidates that pass every filter the cheapest, or
// the one that the group's Selection scores highest, with a place that those ahead leave, and of equal ones the one
// whose turn it is. refused are the providers that
// are out. It computes only, and the order of candidates does not matter.
func Choose(spec GroupSpec, candidates []Candidate, refused []string, rank Rank, now time.Time) Decision {
	judged := judge(spec, candidates, refused, rank, now)
	d := Decision{Counts: countFilters(judged), Considered: len(judged), Full: full(spec, judged)}
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
func Shortlist(spec GroupSpec, candidates []Candidate, refused []string, rank Rank,
	now time.Time) ([]Candidate, map[string]int) {
	judged := judge(spec, candidates, refused, rank, now)
	var short []Candidate
	for _, j := range judged[:min(len(judged), MaxCandidates)] {
		short = append(short, j.candidate)
	}
	return short, countFilters(judged)
}

type judgement struct {
	candidate Candidate
	verdict   Verdict
	lowest    float64 // the lowest price of all that fit
}

func judge(spec GroupSpec, candidates []Candidate, refused []string, rank Rank, now time.Time) []judgement {
	selector, broken := labels.Everything(), error(nil)
	if spec.Selector != nil {
		selector, broken = metav1.LabelSelectorAsSelector(spec.Selector)
	}
	judged := make([]judgement, 0, len(candidates))
	for _, c := range candidates {
		filter, reason := c.verdict(spec, selector, broken, refused, now)
		v := Verdict{
			Provider: c.Offer.Provider, Offer: c.Offer.Name, Epoch: c.Offer.Epoch, Price: spec.Price(c.Offer),
			Fits: filter == "", Filter: filter, Reason: shorten.To(reason, maxReason),
		}
		judged = append(judged, judgement{candidate: c, verdict: v})
	}
	spec.Selection.weigh(judged)
	slices.SortStableFunc(judged, func(a, b judgement) int { return better(a.verdict, b.verdict) })
	if n := choice(spec, judged, rank); n > 0 {
		chosen := judged[n]
		copy(judged[1:n+1], judged[:n])
		judged[0] = chosen
	}
	return judged
}

// choice returns which of the ordered candidates the instance takes. It leaves those ahead the best places, and of the
// equal offers that have places left it deals them out in turn: instances of one group that choose at the same time, of
// a world that none of them has changed yet, choose differently.
func choice(spec GroupSpec, judged []judgement, rank Rank) int {
	if spec.Selection.counts() {
		return spec.Selection.oneByOne(spec, judged, rank)
	}
	ahead := rank.Ahead
	for first := 0; first < len(judged) && judged[first].verdict.Fits; {
		end, places := first, 0
		for end < len(judged) && judged[end].verdict.equals(judged[first].verdict) {
			places += judged[end].candidate.Room(spec.Shape)
			end++
		}
		if ahead < places {
			return first + deal(spec.Shape, judged[first:end], rank, places)
		}
		ahead -= places
		first = end
	}
	return 0
}

// equals reports whether nothing speaks for the one before the other.
func (v Verdict) equals(o Verdict) bool {
	return v.Fits == o.Fits && v.Score == o.Score && v.Price == o.Price
}

// deal returns the offer of the instance's turn: the places of equal offers are dealt out one from each at a time.
func deal(shape corev1.ResourceList, equal []judgement, rank Rank, places int) int {
	order := make([]int, len(equal))
	for n := range order {
		order[n] = n
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Compare(turn(rank.Name, equal[a].verdict.Provider), turn(rank.Name, equal[b].verdict.Provider))
	})
	place := rank.Number % places
	for round := 1; ; round++ {
		for _, n := range order {
			if equal[n].candidate.Room(shape) < round {
				continue
			}
			if place == 0 {
				return n
			}
			place--
		}
	}
}

// turn orders equal providers differently for different names.
func turn(name, provider string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name + "/" + provider))
	return h.Sum32()
}

// full reports whether nothing fits now, and a candidate that is full could.
func full(spec GroupSpec, judged []judgement) bool {
	if len(judged) == 0 || judged[0].verdict.Fits {
		return false
	}
	return slices.ContainsFunc(judged, func(j judgement) bool {
		out := j.verdict.Filter == FilterFit || j.verdict.Filter == FilterMaxNodes
		return out && Lacks(spec.Shape, j.candidate.Offer.Lendable, j.candidate.Offer.Lendable) == ""
	})
}

// better orders verdicts: fitting first, then by score and price, then by names, so that equal input gives equal
// choices.
func better(a, b Verdict) int {
	if a.Fits != b.Fits {
		if a.Fits {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Price, b.Price), cmp.Compare(a.Provider, b.Provider),
		cmp.Compare(a.Offer, b.Offer))
}

func (c Candidate) verdict(spec GroupSpec, selector labels.Selector, broken error, refused []string,
	now time.Time) (Filter, string) {
	o := c.Offer
	if o.Expired(now) {
		return FilterExpired, "the offer expired at " + o.Expires.UTC().Format(time.RFC3339)
	}
	if slices.Contains(refused, o.Provider) {
		return FilterRefused, "it failed this instance before"
	}
	if spec.Provider != "" && spec.Provider != o.Provider {
		return FilterProvider, "the group is of provider " + spec.Provider
	}
	if c.Refusing != "" {
		return FilterRefusing, "the provider refuses this cluster: " + c.Refusing
	}
	if c.Cordoned {
		return FilterCordoned, "an operator cordoned the provider"
	}
	if broken != nil {
		return FilterSelector, fmt.Sprintf("the group's selector cannot be used: %v", broken)
	}
	if !selector.Matches(labels.Set(o.Labels)) {
		return FilterSelector, fmt.Sprintf("labels {%s} do not match the group's selector %s", labels.Set(o.Labels), selector)
	}
	return c.fits(spec)
}

// fits judges what a selected offer has, and what it costs.
func (c Candidate) fits(spec GroupSpec) (Filter, string) {
	o := c.Offer
	if why := spec.Incomparable(o); why != "" {
		return FilterCurrency, why
	}
	if lacks := Lacks(spec.Shape, o.Lendable, c.free()); lacks != "" {
		return FilterFit, lacks
	}
	if o.MaxNodes > 0 && c.Nodes >= o.MaxNodes {
		return FilterMaxNodes, fmt.Sprintf("its maxNodes is %d, %d taken", o.MaxNodes, c.Nodes)
	}
	return "", fmt.Sprintf("fits at price %.6g %s", spec.Price(o), spec.CurrencyOrDefault())
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

func (d Decision) size() int {
	b, err := json.Marshal(d)
	if err != nil { // a price that is no number: sources refuse it; keep the record small rather than whole
		return MaxDecision + 1
	}
	return len(b)
}
