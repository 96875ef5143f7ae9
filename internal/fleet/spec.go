package fleet

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
)

// GroupSpec is a NodeGroup in force: one class of capacity CA may grow. It is translated from the config, whose entries
// may stand for several groups (grpcserver/config.NodeGroup).
type GroupSpec struct {
	InstanceSpec
	// Min is what CA raises the group to, only with --enforce-node-group-min-size.
	Min int `json:"min"`
	// Max bounds the target size. A larger IncreaseSize is refused whole.
	Max int `json:"max"`
	// Standby is how many providers the group keeps peered although it has no node there.
	Standby int `json:"standby,omitempty"`
	// Spending bounds what all nodes of the group's account cost, and names the account; nil means no bound, and an
	// account of the group's own.
	Spending *money.Spending `json:"spending,omitempty"`
	// Volumes are kept (the default), or deleted with the last node of their provider.
	Volumes VolumePolicy `json:"volumes,omitempty"`
}

// Account returns the account that the group's costs belong to.
func (s GroupSpec) Account() string {
	if s.Spending == nil || s.Spending.Account == "" {
		return s.ID
	}
	return s.Spending.Account
}

// VolumePolicy decides about the volumes on a provider whose last node is idle.
type VolumePolicy string

// The policies.
const (
	KeepVolumes   VolumePolicy = "keep"   // a node of the provider stays; also the empty policy
	DeleteVolumes VolumePolicy = "delete" // Liqo deletes them with the last node
)

// InstanceSpec is the part of a GroupSpec that an instance freezes when it is booked. Its driver has it, and its
// objects carry it in their Booking.
type InstanceSpec struct {
	// ID names the group to CA and in instance names: a DNS-1123 label of at most 24 characters.
	ID string `json:"id"`
	// Shape is exactly what each node has, as capacity and as allocatable: cpu, memory and pods at least.
	Shape corev1.ResourceList `json:"shape,omitempty"`
	// Nodes are virtual (Liqo's, the default) or machine (of a worker with --backend microvm).
	Nodes NodeKind `json:"nodes,omitempty"`
	// Labels and Taints are on every node of the group from its first version on.
	Labels map[string]string `json:"labels,omitempty"`
	Taints []corev1.Taint    `json:"taints,omitempty"`
	// GroupTaint, if set, is the effect of one more taint that keeps all pods away but those that ask for this group:
	// key LabelGroup, value the group's id.
	GroupTaint corev1.TaintEffect `json:"groupTaint,omitempty"`
	// Selector is matched against the labels of offers; nil matches every offer.
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// Provider, if set, is the only provider of the group, by its id.
	Provider string `json:"provider,omitempty"`
	// PriceFactor is how many times an offer's price per node a node of the group costs; 0 means once.
	PriceFactor float64 `json:"priceFactor,omitempty"`
	// MaxPrice is what a node may cost in an hour, dearer offers are not used; 0 means any price.
	MaxPrice float64 `json:"maxPrice,omitempty"`
	// Currency is that of all prices, an ISO 4217 code; empty means DefaultCurrency. Offers that are priced in another one
	// are not used: their prices do not compare.
	Currency string `json:"currency,omitempty"`
	// Selection weighs what decides among the offers that fit; nil means the price alone.
	Selection *Selection `json:"selection,omitempty"`
	Budgets   Budgets    `json:"budgets,omitempty"`
}

// NodeKind is what a group's nodes are. Whoever makes them puts labels and taints of its own on each kind.
type NodeKind string

// The kinds. The empty one means NodesVirtual.
const (
	NodesVirtual NodeKind = "virtual" // Liqo's virtual nodes
	NodesMachine NodeKind = "machine" // machines, each registered by its own kubelet
)

// DefaultCurrency is that of node groups that name none, an ISO 4217 code.
const DefaultCurrency = "USD"

// CurrencyOrDefault is the currency of the group's prices.
func (s InstanceSpec) CurrencyOrDefault() string { return cmp.Or(s.Currency, DefaultCurrency) }

// Pays reports whether a node may cost so much in an hour.
func (s InstanceSpec) Pays(price float64) bool {
	return s.MaxPrice == 0 || money.Of(price) <= money.Of(s.MaxPrice)
}

// Budgets bound how long an instance may take, from its booking.
type Budgets struct {
	// SelectWait is how long an instance waits for room when every provider that fits is full. Default 20s.
	SelectWait metav1.Duration `json:"selectWait,omitempty"`
	// Peer bounds the making of a peering that an attempt waits for, without its network. Default 90s.
	Peer metav1.Duration `json:"peer,omitempty"`
	// Network bounds the making of its network; a load balancer takes minutes. Default 5m.
	Network metav1.Duration `json:"network,omitempty"`
	// Join bounds one attempt's Join step. Default 2m.
	Join metav1.Duration `json:"join,omitempty"`
	// Total bounds the search for a provider, from booking, over all attempts. Default 12m; must stay below CA's
	// --max-node-provision-time (15m).
	Total metav1.Duration `json:"total,omitempty"`
	// Drain bounds the eviction of pods; afterwards the node is taken away with what is left on it. Default 10m.
	Drain metav1.Duration `json:"drain,omitempty"`
	// FailedTTL is how long a failed instance that CA does not delete stays listed. Default 1h.
	FailedTTL metav1.Duration `json:"failedTTL,omitempty"`
	// Unready is how long a Node may be not ready while its provider does not answer, before its instance is lost. Default
	// 5m; 0 means never.
	Unready *Term `json:"unready,omitempty"`
	// Isolated is how long nothing is lost while no provider at all answers. Default 30m; 0 means for ever.
	Isolated *Term `json:"isolated,omitempty"`
	// PodStart is how long a pod may take from its virtual node to its first container, before it is reported. Default
	// 10m; longer where the provider adds nodes for pods.
	PodStart metav1.Duration `json:"podStart,omitempty"`
}

// Bounds where nothing else is said.
const (
	EstablishBound = 90 * time.Second // of the making of a peering
	NetworkBound   = 5 * time.Minute  // of its network
	IsolatedBound  = 30 * time.Minute // see Budgets.Isolated
)

// WithDefaults fills what is zero.
func (b Budgets) WithDefaults() Budgets {
	or := func(d metav1.Duration, def time.Duration) metav1.Duration {
		return metav1.Duration{Duration: cmp.Or(max(d.Duration, 0), def)}
	}
	return Budgets{
		Unready: b.Unready.or(5 * time.Minute), Isolated: b.Isolated.or(IsolatedBound),
		SelectWait: or(b.SelectWait, 20*time.Second),
		Peer:       or(b.Peer, EstablishBound),
		Network:    or(b.Network, NetworkBound),
		Join:       or(b.Join, 2*time.Minute),
		Total:      or(b.Total, 12*time.Minute),
		Drain:      or(b.Drain, 10*time.Minute),
		FailedTTL:  or(b.FailedTTL, time.Hour),
		PodStart:   or(b.PodStart, 10*time.Minute),
	}
}

// Term is a time after which something is given up; 0 means never.
type Term struct{ metav1.Duration }

// UnmarshalJSON implements json.Unmarshaler: a duration, or the number 0.
func (t *Term) UnmarshalJSON(text []byte) error {
	if bytes.Equal(text, []byte("0")) {
		*t = Term{}
		return nil
	}
	return t.Duration.UnmarshalJSON(text)
}

// ZeroIsNever returns the time; strictyaml knows by it that 0 may be given.
func (t Term) ZeroIsNever() time.Duration { return t.Duration.Duration }

// or is the term, or the default when there is none.
func (t *Term) or(otherwise time.Duration) *Term {
	return cmp.Or(t, &Term{metav1.Duration{Duration: otherwise}})
}

// Over reports whether the term, counted from then, is over; without a beginning it is not.
func (t *Term) Over(from, now time.Time) bool {
	return t != nil && t.ZeroIsNever() > 0 && !from.IsZero() && now.Sub(from) >= t.ZeroIsNever()
}

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

// Hash is a short fingerprint of the spec: equal specs have equal hashes, whatever the order of their maps.
func (s GroupSpec) Hash() string { return hash(s) }

// Hash is that of the instance's part.
func (s InstanceSpec) Hash() string { return hash(s) }

func hash(spec any) string {
	b, err := json.Marshal(spec)
	if err != nil { // a spec holds nothing that cannot be marshalled
		panic(fmt.Sprintf("marshal spec: %v", err))
	}
	return fmt.Sprintf("%x", sha256.Sum256(b))[:12]
}

// SameTemplate tells whether nodes of both specs are alike: kind, shape, labels and taints. CA may keep what it has
// learnt of a group's nodes as long as it runs (CA processors/nodeinfosprovider/mixed_nodeinfos_processor.go), so these
// must not change under one id.
func (s GroupSpec) SameTemplate(o GroupSpec) bool {
	return GroupSpec{}.WithTemplateOf(s).Hash() == GroupSpec{}.WithTemplateOf(o).Hash()
}

// WithTemplateOf is s with the kind, shape, labels and taints of o.
func (s GroupSpec) WithTemplateOf(o GroupSpec) GroupSpec {
	s.Nodes, s.Shape, s.Labels, s.Taints, s.GroupTaint = o.Nodes, o.Shape, o.Labels, o.Taints, o.GroupTaint
	return s
}
