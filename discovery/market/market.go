// Package market publishes the offers as they are resolved now, with what holds have taken of them, for those who must
// not ask the sources and have no credentials: the gRPC server and the CLI.
//
// It is derived data: whoever loses it makes it anew from the catalog and the providers' entities. So it is no Temporal
// workflow, whose every change would be an event and an action, but one document per hub in a ConfigMap (or a file, for
// `dev`), written by the one worker that holds a Lease.
package market

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/choice"
)

// Bounds of what is published: the best offers of each node group are kept, and then the cheapest. A ConfigMap has room
// for a MiB; what would not fit would not be written at all, and soon nobody would believe the market any longer.
const (
	maxOffers = 1000
	maxBytes  = 900 << 10 // of the offers, as JSON
	bestOf    = 50        // offers of each group
)

// Market is all offers at one moment.
type Market struct {
	// At is when it was written. Readers do not compare it with their clocks, see Reader.
	At     time.Time `json:"at"`
	Offers []Offer   `json:"offers"`
	// Dropped is how many offers were left out.
	Dropped int `json:"dropped,omitempty"`
	// Groups are the node groups that the observer has read, and Findings are for people.
	Groups   []string `json:"groups,omitempty"`
	Findings Findings `json:"findings,omitzero"`
}

// Offer is what one provider offers now, and what is left of it. It says nothing of credentials.
type Offer struct {
	Name     string              `json:"name"`
	Provider string              `json:"provider"`
	Lendable corev1.ResourceList `json:"lendable"`
	// Free is what the holds leave.
	Free     corev1.ResourceList `json:"free"`
	MaxNodes int                 `json:"maxNodes,omitempty"`
	// LargestNodes are the provider's largest nodes, see fleet.Offer.
	LargestNodes []corev1.ResourceList `json:"largestNodes,omitempty"`
	// Nodes is how many nodes hold a share of it.
	Nodes  int                             `json:"nodes,omitempty"`
	Labels map[string]string               `json:"labels,omitempty"`
	Price  float64                         `json:"price,omitempty"`
	Prices map[corev1.ResourceName]float64 `json:"prices,omitempty"`
	// Currency is that of both; empty means the node groups'.
	Currency string `json:"currency,omitempty"`
	// LatencyMilliseconds is the round trip to the provider; 0 means unknown.
	LatencyMilliseconds int        `json:"latencyMilliseconds,omitempty"`
	Expires             *time.Time `json:"expires,omitempty"`
	Epoch               string     `json:"epoch,omitempty"`
	// Peered says that the provider is peered with, so that a node comes sooner.
	Peered bool `json:"peered,omitempty"`
	// Cordoned: an operator wants nothing new there.
	Cordoned bool `json:"cordoned,omitempty"`
	// Removing is since when the last peering with the provider is being removed; zero when it is not.
	Removing time.Time `json:"removing,omitzero"`
	// Closed is why the provider takes nothing new from this cluster now; empty when it does.
	Closed string `json:"closed,omitempty"`
}

// offerOf is an offer as it is published.
func offerOf(o fleet.Offer, state fleet.ProviderSnapshot) Offer {
	c := choice.CandidateOf(o, state)
	free, closed := c.Free, c.Refusing
	if free == nil {
		free = o.Lendable
	}
	if state.Standing.Closes() {
		closed = state.Standing.Condition()
	}
	return Offer{
		Name: o.Name, Provider: o.Provider, Lendable: o.Lendable, Free: free, MaxNodes: o.MaxNodes,
		LargestNodes: o.LargestNodes, Nodes: c.Nodes,
		Labels: o.Labels, Price: o.Price, Prices: o.Prices, Currency: o.Currency, Expires: o.Expires, Epoch: o.Epoch,
		LatencyMilliseconds: o.LatencyMilliseconds, Peered: c.Warm, Cordoned: c.Cordoned, Closed: closed,
		Removing: c.Removing,
	}
}

// Candidate is the offer as choice.Choose judges it.
func (o Offer) Candidate() choice.Candidate {
	return choice.Candidate{
		Offer: fleet.Offer{
			Name: o.Name, Provider: o.Provider, Lendable: o.Lendable, MaxNodes: o.MaxNodes, Labels: o.Labels, Price: o.Price,
			LargestNodes: o.LargestNodes,
			Prices:       o.Prices, Currency: o.Currency, Expires: o.Expires, Epoch: o.Epoch,
			LatencyMilliseconds: o.LatencyMilliseconds,
		},
		Free: o.Free.DeepCopy(), Nodes: o.Nodes, Warm: o.Peered, Refusing: o.Closed, Cordoned: o.Cordoned,
		Removing: o.Removing,
	}
}

// ordinary is a node by whose price offers are ordered: those by node and those by resource compare by a shape alone.
var ordinary = fleet.InstanceSpec{Shape: corev1.ResourceList{
	corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("16Gi"),
}}

// price is what an ordinary node costs.
func (o Offer) price() float64 {
	return choice.Price(ordinary, fleet.Offer{Price: o.Price, Prices: o.Prices})
}

// newMarket orders the offers by price. Of more than fit it keeps those that the groups need, and then the cheapest.
func newMarket(offers []Offer, groups []fleet.GroupSpec, now time.Time) (Market, error) {
	byPrice := func(a, b Offer) int {
		return cmp.Or(cmp.Compare(a.price(), b.price()), cmp.Compare(a.Provider, b.Provider))
	}
	slices.SortFunc(offers, byPrice)
	n, err := fitting(offers)
	if err == nil && n < len(offers) {
		needed := bestOffers(offers, groups, now)
		slices.SortStableFunc(offers, func(a, b Offer) int { return cmp.Compare(needed[b.Provider], needed[a.Provider]) })
		n, err = fitting(offers)
		slices.SortFunc(offers[:n], byPrice)
	}
	if err != nil {
		return Market{}, err
	}
	return Market{At: now, Offers: offers[:n], Dropped: len(offers) - n}, nil
}

// fitting is how many of the offers, from the first on, there is room for.
func fitting(offers []Offer) (n int, err error) {
	for size := 0; n < min(len(offers), maxOffers); n++ {
		raw, err := json.Marshal(offers[n])
		if err != nil {
			return 0, fmt.Errorf("write offer %s: %w", offers[n].Name, err)
		}
		if size += len(raw) + 1; size > maxBytes {
			break
		}
	}
	return n, nil
}

// Providers are those with nodes.
func (m Market) Providers() (ids []string) {
	for _, o := range m.Offers {
		if o.Nodes > 0 || o.Peered {
			ids = append(ids, o.Provider)
		}
	}
	return ids
}

// Candidates are the offers as a node group chooses among them.
func (m Market) Candidates() []choice.Candidate {
	candidates := make([]choice.Candidate, len(m.Offers))
	for i, o := range m.Offers {
		candidates[i] = o.Candidate()
	}
	return candidates
}

// bestOffers marks with 1 the providers of the offers that are the cheapest of a group, among those that can have a
// node of it.
func bestOffers(offers []Offer, groups []fleet.GroupSpec, now time.Time) map[string]int {
	candidates := Market{Offers: offers}.Candidates()
	best := map[string]int{}
	for _, g := range groups {
		matching := choice.Matching(g.InstanceSpec, candidates, now)
		for _, o := range matching[:min(len(matching), bestOf)] {
			best[o.Provider] = 1
		}
	}
	return best
}

// Store keeps the document of one hub.
type Store interface {
	// Load returns ErrNone before anything was saved.
	Load(ctx context.Context) (Market, error)
	Save(ctx context.Context, m Market) error
}
