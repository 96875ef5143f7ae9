package choice

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Candidate is an offer with what is known to be taken of it.
type Candidate struct {
	Offer fleet.Offer `json:"offer"`
	// Free is what is left after holds, as far as known; nil means all that is lendable. A resource that is missing in
	// it is used up, so empty is not nil, in JSON neither.
	Free corev1.ResourceList `json:"free"`
	// Nodes is how many nodes hold a share of the offer, as far as known.
	Nodes int `json:"nodes,omitempty"`
	// Own is how many nodes of the group itself the provider has, Warm whether its peering is there, and Failures the
	// Weight of what the group has met there lately.
	Own      int     `json:"own,omitempty"`
	Warm     bool    `json:"warm,omitempty"`
	Failures float64 `json:"failures,omitempty"`
	// Refusing is why the provider takes nothing from this cluster now, in words.
	Refusing string `json:"refusing,omitempty"`
	// Cordoned: an operator wants nothing new there.
	Cordoned bool `json:"cordoned,omitempty"`
	// Removing is since when the last peering with the provider is being removed; zero when it is not.
	Removing time.Time `json:"removing,omitzero"`
}

// RemovalHangs is how long the removal of a peering may take before the provider is the last choice, because a new
// peering waits for it. An ordinary removal takes a few seconds, and one with pods that do not end takes as long as
// they.
const RemovalHangs = 30 * time.Second

// hangs reports whether a new peering would probably wait in vain for the removal of the last one.
func (c *Candidate) hangs(now time.Time) bool {
	return !c.Removing.IsZero() && now.Sub(c.Removing) > RemovalHangs
}

// whyLast continues the reason of a candidate that fits: why it is the last choice, or nothing.
func (c *Candidate) whyLast(now time.Time) string {
	if !c.hangs(now) {
		return ""
	}
	return "; it is the last choice, because its last peering is being removed since " +
		c.Removing.UTC().Format(time.RFC3339)
}

// CandidateOf is an offer with what its provider's holds have taken of it, as the provider published.
func CandidateOf(o fleet.Offer, state fleet.ProviderSnapshot) Candidate {
	c := Candidate{Offer: o, Nodes: len(state.Holds), Cordoned: !state.Cordoned.IsZero(),
		Warm: state.Phase == fleet.Established || state.Phase == fleet.Lingering}
	if state.Refusing != nil {
		c.Refusing = state.Refusing.Reason
	}
	if state.Phase == fleet.Removing {
		c.Removing = state.Since
	}
	if state.Offer == nil {
		return c
	}
	c.Free = o.Lendable.DeepCopy()
	for name, whole := range state.Offer.Lendable {
		if have, ok := c.Free[name]; ok {
			whole.Sub(state.Free[name]) // what is taken
			have.Sub(whole)
			c.Free[name] = have
		}
	}
	return c
}

// Own notes how many nodes of one group each provider has.
func Own(candidates []Candidate, nodes map[string]int) {
	for n := range candidates {
		candidates[n].Own = nodes[candidates[n].Offer.Provider]
	}
}

// Take subtracts n nodes of a shape. A copy of the candidate that was made before keeps its amounts.
func (c *Candidate) Take(n int, shape corev1.ResourceList) {
	if n < 1 {
		return
	}
	c.Nodes += n
	c.Free = c.free().DeepCopy()
	for name, each := range shape {
		if have, ok := c.Free[name]; ok {
			for range n {
				have.Sub(each)
			}
			c.Free[name] = have
		}
	}
}

// room is how many nodes of the shape a candidate that fits has places for: one at least, and at most 1,000.
func (c *Candidate) room(shape []amount) int {
	most := 1000
	if c.Offer.MaxNodes > 0 {
		most = min(most, c.Offer.MaxNodes-c.Nodes)
	}
	free := c.free()
	for n := range shape {
		if have, ok := free[shape[n].Name]; ok && shape[n].Want.Sign() > 0 {
			most = min(most, times(have, shape[n].Want, most))
		}
	}
	return max(most, 1)
}

// times is how many times an amount that is wanted is there, but not more than most. The quotient of floats may be one
// too many.
func times(have, want resource.Quantity, most int) int {
	n := int(min(have.AsApproximateFloat64()/want.AsApproximateFloat64()+1e-9, float64(most)))
	all := want.DeepCopy()
	all.Mul(int64(n))
	if all.Cmp(have) > 0 {
		n--
	}
	return n
}

func (c Candidate) free() corev1.ResourceList {
	if c.Free == nil {
		return c.Offer.Lendable
	}
	return c.Free
}

// Room is how many more nodes of the group the candidates have places for, by provider.
func Room(spec fleet.InstanceSpec, candidates []Candidate, now time.Time) map[string]int {
	room := map[string]int{}
	q := judge(spec, candidates, nil, now)
	for _, j := range q.judged {
		if j.filter == "" {
			room[j.candidate.Offer.Provider] = j.candidate.room(q.shape)
		}
	}
	return room
}

// Place takes the places that n instances of the group would choose, one after the other. It returns how many
// find none.
func Place(spec fleet.InstanceSpec, n int, candidates []Candidate, now time.Time) (without int) {
	if n < 1 {
		return 0
	}
	q, taken := judge(spec, candidates, nil, now), map[*Candidate]int{}
	for at := range q.order(spec.ID, n) {
		taken[q.judged[at].candidate]++
		if n--; n == 0 {
			break
		}
	}
	for c, nodes := range taken {
		c.Take(nodes, spec.Shape)
	}
	return n
}

// Matching returns the offers that the group may use when all their capacity is free, ordered by the price of a node
// there. An offer that is smaller than one node is left out.
func Matching(spec fleet.InstanceSpec, candidates []Candidate, now time.Time) (matching []fleet.Offer) {
	q := judge(spec, candidates, nil, now)
	byPrice := func(a, b judgement) int { return cmp.Compare(a.price, b.price) }
	for _, j := range slices.SortedStableFunc(q.best(q.choice(Rank{})), byPrice) {
		if j.filter == "" || q.isFull(j) {
			matching = append(matching, j.candidate.Offer)
		}
	}
	return matching
}

// Dearest is what a node costs on the most expensive offer that the group may use, or may use once it is large enough;
// 0 when none has a price.
func Dearest(spec fleet.InstanceSpec, candidates []Candidate, now time.Time) (most float64) {
	for _, j := range judge(spec, candidates, nil, now).judged {
		if j.filter == "" || j.filter == FilterFit || j.filter == FilterMaxNodes {
			most = max(most, j.price)
		}
	}
	return most
}
