package choice

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
)

// question contains the criteria of a choice and the evaluations of its candidates.
type question struct {
	spec        fleet.InstanceSpec
	shape       []amount
	selector    labels.Selector
	broken      error // the error of an unusable selector
	refused     []string
	now         time.Time
	lowest      float64 // the lowest price of a fitting candidate, see evaluate
	evaluations []evaluation
}

// evaluation contains only the values by which candidates are ordered, because there may be thousands of candidates.
// The details are computed for the few candidates that users see, see Assessment.
type evaluation struct {
	candidate *Candidate
	filter    Filter // the first filter that excluded the candidate; empty when it fits
	hangs     bool   // the removal of the last peering with the provider hangs
	price     float64
	score     float64
}

func evaluate(spec fleet.InstanceSpec, candidates []Candidate, refused []string, now time.Time) *question {
	q := &question{spec: spec, shape: amountsOf(spec.Shape), selector: labels.Everything(), refused: refused, now: now,
		lowest: MaxPrice, evaluations: make([]evaluation, len(candidates))}
	if spec.Selector != nil {
		q.selector, q.broken = metav1.LabelSelectorAsSelector(spec.Selector)
	}
	free := false
	for n := range candidates {
		c, j := &candidates[n], &q.evaluations[n]
		*j = evaluation{candidate: c, hangs: c.hangs(now), price: price(&q.spec, &c.Offer, q.shape)}
		j.filter = q.filter(c, j.price)
		switch {
		case j.filter != "":
		case j.price > 0:
			q.lowest = min(q.lowest, j.price)
		default:
			free = true
		}
	}
	if free {
		q.lowest *= unpriced
	}
	for n := range q.evaluations {
		q.weigh(&q.evaluations[n], candidates[n].Own)
	}
	return q
}

// filter returns the first filter that excludes the candidate. The parameter price is the price of a node on the
// offer. It returns "" when the candidate fits.
func (q *question) filter(c *Candidate, price float64) Filter {
	o := &c.Offer
	switch {
	case o.Expired(q.now):
		return FilterExpired
	case slices.Contains(q.refused, o.Provider):
		return FilterRefused
	case q.spec.Provider != "" && q.spec.Provider != o.Provider:
		return FilterProvider
	case c.Refusing != "":
		return FilterRefusing
	case c.Cordoned:
		return FilterCordoned
	case !q.selects(o):
		return FilterSelector
	case o.Architecture() != "" && o.Architecture() != q.spec.Architecture():
		return FilterArchitecture
	}
	return q.capacityFilter(c, price)
}

// capacityFilter returns the first filter on price or free capacity that excludes the candidate. The other filters
// have already accepted the candidate.
func (q *question) capacityFilter(c *Candidate, price float64) Filter {
	o := &c.Offer
	switch {
	case !compares(&q.spec, o):
		return FilterCurrency
	case !q.spec.Pays(price):
		return FilterSpending
	case !q.fitsNode(o):
		return FilterNode
	case !q.fits(o.Lendable, c.Free):
		return FilterFit
	case o.MaxNodes > 0 && c.Nodes >= o.MaxNodes:
		return FilterMaxNodes
	}
	return ""
}

func (q *question) selects(o *fleet.Offer) bool {
	return q.broken == nil && q.selector.Matches(labels.Set(o.Labels))
}

// reason returns the text that explains the filter. For a candidate that fits it returns a text with the price.
func (q *question) reason(c *Candidate, filter Filter) string {
	o := c.Offer
	switch filter {
	case FilterExpired:
		return "the offer expired at " + o.Expires.UTC().Format(time.RFC3339)
	case FilterRefused:
		return "an attempt of this instance on this provider has failed"
	case FilterProvider:
		return "the group is of provider " + q.spec.Provider
	case FilterRefusing:
		return "the provider refuses this cluster: " + c.Refusing
	case FilterCordoned:
		return "an operator cordoned the provider"
	case FilterSelector:
		return q.mismatch(o)
	case FilterArchitecture:
		return fmt.Sprintf("its nodes are %s, and the group's are %s: set the label %s of the group", o.Architecture(),
			q.spec.Architecture(), corev1.LabelArchStable)
	case FilterCurrency, FilterSpending, FilterNode, FilterFit, FilterMaxNodes:
		return q.short(c, filter)
	}
	return fmt.Sprintf("fits at price %.6g %s%s", Price(q.spec, o), q.spec.CurrencyOrDefault(), c.whyLast(q.now))
}

// short returns the text that explains a filter of capacityFilter.
func (q *question) short(c *Candidate, filter Filter) string {
	o := c.Offer
	switch {
	case filter == FilterCurrency:
		return Incomparable(q.spec, o)
	case filter == FilterSpending:
		return fmt.Sprintf("a node costs %.6g %s an hour there, and spending allows %.6g", Price(q.spec, o),
			q.spec.CurrencyOrDefault(), q.spec.MaxPrice)
	case filter == FilterNode:
		return "no node of the provider is large enough for the shape"
	case filter == FilterFit:
		return fleet.Lacks(q.spec.Shape, o.Lendable, c.free())
	default:
		return fmt.Sprintf("its maxNodes is %d, %d taken", o.MaxNodes, c.Nodes)
	}
}

// mismatch returns the text for an offer whose labels the group's selector does not match.
func (q *question) mismatch(o fleet.Offer) string {
	if q.broken != nil {
		return fmt.Sprintf("the group's selector cannot be used: %v", q.broken)
	}
	return fmt.Sprintf("labels {%s} do not match the group's selector %s", labels.Set(o.Labels), q.selector)
}

// assessment returns the Assessment that records an evaluation.
func (q *question) assessment(j evaluation) Assessment {
	o := j.candidate.Offer
	v := Assessment{
		Provider: o.Provider, Offer: o.Name, Epoch: o.Epoch, Fits: j.filter == "", Filter: j.filter,
		Reason: q.reason(j.candidate, j.filter), Price: j.price, Score: j.score,
	}
	if v.Fits && q.spec.Selection != nil {
		v.Parts = map[string]float64{}
		for _, p := range q.parts(&j, j.candidate.Own) {
			if p.weight > 0 {
				v.Parts[p.name] = p.worth()
			}
		}
		v.Reason += fmt.Sprintf(", score %.4g: %s", v.Score, inWords(v.Parts))
	}
	v.Reason = shorten.Words(v.Reason, maxReason)
	return v
}

// full reports whether at least one candidate lacks only free capacity, see isFull.
func (q *question) full() bool { return slices.ContainsFunc(q.evaluations, q.isFull) }

// isFull reports whether the candidate cannot take the shape now, but could if all its capacity were free.
func (q *question) isFull(j evaluation) bool {
	return (j.filter == FilterFit || j.filter == FilterMaxNodes) && q.fits(j.candidate.Offer.Lendable, nil)
}

// fitsNode reports whether a node of the provider is large enough for the shape. An offer without node sizes counts as
// large enough.
func (q *question) fitsNode(o *fleet.Offer) bool {
	return len(o.LargestNodes) == 0 || slices.ContainsFunc(o.LargestNodes, func(node corev1.ResourceList) bool {
		return q.fits(node, nil)
	})
}

// fits reports whether the shape fits. It returns true if and only if fleet.Lacks returns "". If free is nil, all
// offered capacity is free.
func (q *question) fits(offered, free corev1.ResourceList) bool {
	for n := range q.shape {
		if !q.shape[n].Fits(offered, free) {
			return false
		}
	}
	return true
}

func countFilters(evaluations []evaluation) map[string]int {
	counts := map[string]int{}
	for _, j := range evaluations {
		if j.filter != "" {
			counts[string(j.filter)]++
		}
	}
	return counts
}
