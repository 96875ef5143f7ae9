// Package market publishes the market: the present offers, and their free capacity. The gRPC server and the CLI read
// the market, because they have no credentials and must not query the sources of offers.
//
// If the market is lost, the worker computes it again from the catalog and the providers' workflows. The market is
// not in a Temporal workflow, because each change would be an event and a billed action. It is one document per hub
// in a ConfigMap, or in a file for `dev`. Only the worker that holds the hub's Lease writes it.
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

// These constants bound the published offers, because a ConfigMap is limited to 1 MiB. If the document were larger,
// the worker could not write it, and readers would soon treat the last written market as stale. If there are too many
// offers, the best offers of each node group are kept first, and then the cheapest offers.
const (
	maxOffers = 1000
	maxBytes  = 900 << 10 // of the offers, as JSON
	bestOf    = 50        // best offers of each group
)

// Market contains all offers at one moment.
type Market struct {
	// At is the time at which this market was written. Readers do not compare this time with their clocks, see
	// Reader.
	At     time.Time `json:"at"`
	Offers []Offer   `json:"offers"`
	// Dropped is the number of offers that are omitted because of the bounds.
	Dropped int `json:"dropped,omitempty"`
	// Groups are the ids of the node groups that the observer has read in its last round.
	Groups   []string `json:"groups,omitempty"`
	Findings Findings `json:"findings,omitzero"`
}

// Offer is the present offer of one provider, with the capacity that is free. It contains no credentials.
type Offer struct {
	Name     string              `json:"name"`
	Provider string              `json:"provider"`
	Lendable corev1.ResourceList `json:"lendable"`
	// Free contains the amounts of Lendable that no hold uses.
	Free     corev1.ResourceList `json:"free"`
	MaxNodes int                 `json:"maxNodes,omitempty"`
	// LargestNodes are the provider's largest nodes, see fleet.Offer.
	LargestNodes []corev1.ResourceList `json:"largestNodes,omitempty"`
	// Nodes is the number of nodes that have a hold on the offer.
	Nodes  int                             `json:"nodes,omitempty"`
	Labels map[string]string               `json:"labels,omitempty"`
	Price  float64                         `json:"price,omitempty"`
	Prices map[corev1.ResourceName]float64 `json:"prices,omitempty"`
	// Currency is the currency of Price and Prices; empty means the node groups' currency.
	Currency string `json:"currency,omitempty"`
	// LatencyMilliseconds is the round-trip time to the provider; 0 means unknown.
	LatencyMilliseconds int        `json:"latencyMilliseconds,omitempty"`
	Expires             *time.Time `json:"expires,omitempty"`
	Epoch               string     `json:"epoch,omitempty"`
	// Peered is true when a peering with the provider exists. A new node is then ready sooner.
	Peered bool `json:"peered,omitempty"`
	// Cordoned is true when an operator permits no new nodes on the provider.
	Cordoned bool `json:"cordoned,omitempty"`
	// Removing is the time at which the removal of the peering with the provider started; zero if no removal is in
	// progress.
	Removing time.Time `json:"removing,omitzero"`
	// Closed is the reason for which the provider accepts no new nodes from this cluster, or "" when it accepts them.
	Closed string `json:"closed,omitempty"`
}

// offerOf returns the offer in the form in which the market publishes it.
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

// Candidate returns the offer in the form that choice.Choose evaluates.
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

// ordinary is an example of a node. Offers are ordered by the price of this node, because a price per node and prices
// per resource can be compared only for a node of a given shape.
var ordinary = fleet.InstanceSpec{Shape: corev1.ResourceList{
	corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("16Gi"),
}}

// price returns the price of an ordinary node on this offer.
func (o Offer) price() float64 {
	return choice.Price(ordinary, fleet.Offer{Price: o.Price, Prices: o.Prices})
}

// newMarket returns the market with the offers ordered by price. If the offers exceed the bounds, it keeps first the
// best offers of each group, and then the cheapest offers.
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

// fitting returns the largest number n such that the first n offers do not exceed the bounds.
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

// Providers returns the providers with nodes or a peering.
func (m Market) Providers() (ids []string) {
	for _, o := range m.Offers {
		if o.Nodes > 0 || o.Peered {
			ids = append(ids, o.Provider)
		}
	}
	return ids
}

// Candidates returns the offers in the form that choice.Choose evaluates.
func (m Market) Candidates() []choice.Candidate {
	candidates := make([]choice.Candidate, len(m.Offers))
	for i, o := range m.Offers {
		candidates[i] = o.Candidate()
	}
	return candidates
}

// bestOffers returns 1 for each provider whose offer is among the bestOf cheapest offers of at least one group. For a
// group it considers only offers that the group could use if all their capacity were free.
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

// Store loads and saves the market of one hub.
type Store interface {
	// Load returns ErrNone before the first Save.
	Load(ctx context.Context) (Market, error)
	Save(ctx context.Context, m Market) error
}
