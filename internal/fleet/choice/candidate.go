package choice

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Candidate is an offer together with the capacity that is known to be taken.
type Candidate struct {
	Offer fleet.Offer `json:"offer"`
	// Free contains the amounts of the offer that no hold has taken, as far as known. Nil means that all amounts of
	// the offer are free. In a list that is not nil, a resource without an entry is used up. Therefore an empty list
	// differs from nil, in JSON too.
	Free corev1.ResourceList `json:"free"`
	// Nodes is the number of nodes that use part of the offered amounts, as far as known.
	Nodes int `json:"nodes,omitempty"`
	// Own is the number of the group's own nodes at the provider. Warm reports whether the provider is peered.
	// Failures is the Weight of the group's recent failures at the provider.
	Own      int     `json:"own,omitempty"`
	Warm     bool    `json:"warm,omitempty"`
	Failures float64 `json:"failures,omitempty"`
	// Refusing describes why the provider accepts nothing from this cluster now; "" when it does not refuse.
	Refusing string `json:"refusing,omitempty"`
	// Cordoned reports that an operator allows no new nodes at the provider.
	Cordoned bool `json:"cordoned,omitempty"`
	// Removing is the start of the removal of the last peering with the provider; zero when no removal is in progress.
	Removing time.Time `json:"removing,omitzero"`
}

// RemovalHangs is the time after which the removal of a peering affects the choice. The provider is then the last
// choice, because a new peering waits for the end of the removal. A removal usually takes a few seconds. It takes
// longer if pods on the provider do not end.
const RemovalHangs = 30 * time.Second

// hangs reports whether the removal of the last peering has already taken longer than RemovalHangs. A new peering
// would then probably wait for too long.
func (c *Candidate) hangs(now time.Time) bool {
	return !c.Removing.IsZero() && now.Sub(c.Removing) > RemovalHangs
}

// whyLast returns a text to append to the reason of a fitting candidate. The text explains why the candidate is the
// last choice. It is "" if no removal hangs.
func (c *Candidate) whyLast(now time.Time) string {
	if !c.hangs(now) {
		return ""
	}
	return "; it is the last choice, because its last peering is being removed since " +
		c.Removing.UTC().Format(time.RFC3339)
}

// CandidateOf returns the candidate for an offer. The holds in the provider's snapshot determine the free capacity.
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
			whole.Sub(state.Free[name]) // subtracting the free amount leaves the taken amount
			have.Sub(whole)
			c.Free[name] = have
		}
	}
	return c
}

// Own sets the field Own of each candidate. nodes contains the number of the group's nodes by provider.
func Own(candidates []Candidate, nodes map[string]int) {
	for n := range candidates {
		candidates[n].Own = nodes[candidates[n].Offer.Provider]
	}
}

// Take subtracts n nodes of a shape from the free capacity. It does not change a copy of the candidate that was made
// earlier.
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

// room returns how many more nodes of the shape the candidate can take, at most 1,000. The caller knows that at least
// one node fits.
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

// times returns how many times the amount in want fits into the amount in have. The parameter `most` limits the
// result. times corrects the floating-point quotient, which may be one too large.
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

// Room returns, by provider, how many more nodes of the group fit on the provider's candidate. A provider without an
// entry has no room.
func Room(spec fleet.InstanceSpec, candidates []Candidate, now time.Time) map[string]int {
	room := map[string]int{}
	q := evaluate(spec, candidates, nil, now)
	for _, j := range q.evaluations {
		if j.filter == "" {
			room[j.candidate.Offer.Provider] = j.candidate.room(q.shape)
		}
	}
	return room
}

// Place distributes n instances of the group over the candidates, as if they chose one after the other, and subtracts
// their capacity. It returns the number of instances that do not fit.
func Place(spec fleet.InstanceSpec, n int, candidates []Candidate, now time.Time) (without int) {
	if n < 1 {
		return 0
	}
	q, taken := evaluate(spec, candidates, nil, now), map[*Candidate]int{}
	for at := range q.order(spec.ID, n) {
		taken[q.evaluations[at].candidate]++
		if n--; n == 0 {
			break
		}
	}
	for c, nodes := range taken {
		c.Take(nodes, spec.Shape)
	}
	return n
}

// Matching returns the offers that the group could use if all offered capacity were free, ordered by the price of a
// node. It omits offers that are too small for one node.
func Matching(spec fleet.InstanceSpec, candidates []Candidate, now time.Time) (matching []fleet.Offer) {
	q := evaluate(spec, candidates, nil, now)
	byPrice := func(a, b evaluation) int { return cmp.Compare(a.price, b.price) }
	for _, j := range slices.SortedStableFunc(q.best(q.choice(Rank{})), byPrice) {
		if j.filter == "" || q.isFull(j) {
			matching = append(matching, j.candidate.Offer)
		}
	}
	return matching
}

// Dearest returns the highest hourly price of a node among the candidates that fit or that lack only capacity. It
// returns 0 when these candidates have no prices.
func Dearest(spec fleet.InstanceSpec, candidates []Candidate, now time.Time) (most float64) {
	for _, j := range evaluate(spec, candidates, nil, now).evaluations {
		if j.filter == "" || j.filter == FilterFit || j.filter == FilterMaxNodes {
			most = max(most, j.price)
		}
	}
	return most
}
