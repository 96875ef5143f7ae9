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

// GroupSpec is the applied spec of a NodeGroup: one class of capacity that CA may grow. The server translates it from
// the config, where one entry may define several groups (grpcserver/config.NodeGroup).
type GroupSpec struct {
	InstanceSpec
	// Min is the size to which CA raises the group, if CA runs with --enforce-node-group-min-size.
	Min int `json:"min"`
	// Max bounds the target size. An IncreaseSize that exceeds it is refused as a whole.
	Max int `json:"max"`
	// Standby is the number of providers that the group keeps peered without having a node there.
	Standby int `json:"standby,omitempty"`
	// Spending bounds the cost of all nodes of the group's account, and names the account. Nil means that the cost
	// is unbounded, and that the group has its own account.
	Spending *money.Spending `json:"spending,omitempty"`
	// Volumes determines whether volumes are kept (the default), or deleted with the last node of their provider.
	Volumes VolumePolicy `json:"volumes,omitempty"`
}

// Account returns the account that the group's costs belong to.
func (s GroupSpec) Account() string {
	if s.Spending == nil || s.Spending.Account == "" {
		return s.ID
	}
	return s.Spending.Account
}

// VolumePolicy determines the treatment of the volumes on a provider whose last node is idle.
type VolumePolicy string

// These are the policies.
const (
	KeepVolumes   VolumePolicy = "keep"   // one node of the provider stays; the empty policy means the same
	DeleteVolumes VolumePolicy = "delete" // Liqo deletes the volumes with the last node
)

// InstanceSpec is the part of a GroupSpec that is fixed for an instance when it is booked. The input of the instance's
// driver contains this part, and so does the Booking on the instance's objects.
type InstanceSpec struct {
	// ID names the group to CA and in instance names: a DNS-1123 label of at most 24 characters.
	ID string `json:"id"`
	// Shape contains the exact capacity and allocatable amounts of each node: at least cpu, memory and pods.
	Shape corev1.ResourceList `json:"shape,omitempty"`
	// Nodes is the kind of the nodes: virtual nodes of Liqo (the default), or machines of a worker with --backend
	// microvm.
	Nodes NodeKind `json:"nodes,omitempty"`
	// Labels and Taints are set on every node of the group from the creation of its Node object on.
	Labels map[string]string `json:"labels,omitempty"`
	Taints []corev1.Taint    `json:"taints,omitempty"`
	// GroupTaint, if set, is the effect of an additional taint with the key LabelGroup and the group's id as value.
	// Only pods that tolerate this taint, and so request this group, run on its nodes.
	GroupTaint corev1.TaintEffect `json:"groupTaint,omitempty"`
	// Selector selects offers by their labels; nil selects every offer.
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// Provider, if set, is the id of the group's only provider.
	Provider string `json:"provider,omitempty"`
	// PriceFactor is multiplied with an offer's price per node to get the price of a node of the group; 0 means 1.
	PriceFactor float64 `json:"priceFactor,omitempty"`
	// MaxPrice bounds the hourly price of a node. More expensive offers are not used; 0 means any price.
	MaxPrice float64 `json:"maxPrice,omitempty"`
	// Currency is the ISO 4217 code for all prices; empty means DefaultCurrency. Offers in another currency are not
	// used, because their prices cannot be compared.
	Currency string `json:"currency,omitempty"`
	// Selection contains the weights for choosing among the offers that fit; nil means that only the price decides.
	Selection *Selection `json:"selection,omitempty"`
	Budgets   Budgets    `json:"budgets,omitempty"`
}

// NodeKind names the kind of a group's nodes. The software that makes nodes of a kind adds its own labels and taints.
type NodeKind string

// These are the kinds. The empty one means NodesVirtual.
const (
	NodesVirtual NodeKind = "virtual" // Liqo's virtual nodes
	NodesMachine NodeKind = "machine" // machines, each registered by its own kubelet
)

// DefaultCurrency is the ISO 4217 code for node groups without a currency.
const DefaultCurrency = "USD"

// CurrencyOrDefault returns the currency of the group's prices.
func (s InstanceSpec) CurrencyOrDefault() string { return cmp.Or(s.Currency, DefaultCurrency) }

// Pays reports whether a node may have this hourly price.
func (s InstanceSpec) Pays(price float64) bool {
	return s.MaxPrice == 0 || money.Of(price) <= money.Of(s.MaxPrice)
}

// Budgets bounds the durations of an instance's steps and waits.
type Budgets struct {
	// SelectWait bounds the wait for free capacity while every matching provider is full. Default 20s.
	SelectWait metav1.Duration `json:"selectWait,omitempty"`
	// Peer bounds the time that an attempt waits for its peering to be established. The time for the peering's network
	// is not included. Default 90s.
	Peer metav1.Duration `json:"peer,omitempty"`
	// Network bounds the time to set up the network of a peering; a load balancer takes minutes. Default 5m.
	Network metav1.Duration `json:"network,omitempty"`
	// Join bounds one attempt's Join step. Default 2m.
	Join metav1.Duration `json:"join,omitempty"`
	// Total bounds the time from the booking until the instance has found a provider, over all attempts. Default 12m;
	// must stay below CA's --max-node-provision-time (15m).
	Total metav1.Duration `json:"total,omitempty"`
	// Drain bounds the eviction of pods; afterwards the node is removed with its remaining pods. Default 10m.
	Drain metav1.Duration `json:"drain,omitempty"`
	// FailedTTL is the time for which a failed instance stays listed if CA does not delete it. Default 1h.
	FailedTTL metav1.Duration `json:"failedTTL,omitempty"`
	// An instance is lost when its Node has not been ready, and its provider has not answered, for the time Unready.
	// Default 5m; 0 means never.
	Unready *Term `json:"unready,omitempty"`
	// Isolated applies while no provider answers: no instance is declared lost before this time has passed. Default
	// 30m; 0 means without limit.
	Isolated *Term `json:"isolated,omitempty"`
	// A pod is reported if its first container does not start within PodStart. The time starts when the pod is bound
	// to the virtual node. Default 10m. Set a longer time where the provider adds nodes for pods.
	PodStart metav1.Duration `json:"podStart,omitempty"`
}

// These bounds apply where no other bound is configured.
const (
	EstablishBound = 90 * time.Second // to establish a peering
	NetworkBound   = 5 * time.Minute  // to set up the network of a peering
	IsolatedBound  = 30 * time.Minute // see Budgets.Isolated
)

// WithDefaults returns the budgets with the defaults in place of zero values.
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

// Term is the time after which a wait ends; 0 means never.
type Term struct{ metav1.Duration }

// UnmarshalJSON accepts a duration, or the number 0.
func (t *Term) UnmarshalJSON(text []byte) error {
	if bytes.Equal(text, []byte("0")) {
		*t = Term{}
		return nil
	}
	return t.Duration.UnmarshalJSON(text)
}

// ZeroIsNever returns the duration. The package strictyaml recognizes types with this method as types for which 0 is a
// valid value.
func (t Term) ZeroIsNever() time.Duration { return t.Duration.Duration }

// or returns the term, or the default for a nil term.
func (t *Term) or(otherwise time.Duration) *Term {
	return cmp.Or(t, &Term{metav1.Duration{Duration: otherwise}})
}

// Over reports whether the term has expired since from. If from is zero, the term has not expired.
func (t *Term) Over(from, now time.Time) bool {
	return t != nil && t.ZeroIsNever() > 0 && !from.IsZero() && now.Sub(from) >= t.ZeroIsNever()
}

// Selection weighs the properties of the providers that can take the node. Each property has a value between 0 and 1,
// which is multiplied by its weight. The provider with the largest sum is chosen. If several providers have this sum,
// the cheapest provider is chosen. Without a Selection only the price decides.
type Selection struct {
	// Price favours the cheaper node: its value is the lowest price of all providers, divided by the provider's price.
	Price float64 `json:"price,omitempty" validate:"gte=0,lte=100"`
	// Warm favours a provider with a peering: its value is 1 with a peering, otherwise 0.
	Warm float64 `json:"warm,omitempty" validate:"gte=0,lte=100"`
	// Latency favours the closer provider: its value is 1 for no latency, and 1/2 for 50 ms. It is 0 for an offer
	// without latencyMilliseconds.
	Latency float64 `json:"latency,omitempty" validate:"gte=0,lte=100"`
	// Spread favours the provider with fewer nodes of the group: its value is 1 for no node, 1/2 for one node, and 1/3
	// for two nodes.
	Spread float64 `json:"spread,omitempty" validate:"gte=0,lte=100"`
	// Pack favours the provider with more nodes of the group: its value is 0 for no node, 1/2 for one node, and 2/3
	// for two nodes.
	Pack float64 `json:"pack,omitempty" validate:"gte=0,lte=100"`
	// Failures favours the provider with fewer failures of the group: its value is 1 for no failure, and 1/2 for one
	// new failure. The weight of a failure halves every 30 minutes.
	Failures float64 `json:"failures,omitempty" validate:"gte=0,lte=100"`
}

// Empty reports whether all weights are zero.
func (s Selection) Empty() bool { return s == Selection{} }

// Hash returns a short fingerprint of the spec. Equal specs have equal hashes; the order of the keys in their maps
// does not matter.
func (s GroupSpec) Hash() string { return hash(s) }

// Hash returns a short fingerprint of the fields that are fixed for an instance. Equal specs have equal hashes.
func (s InstanceSpec) Hash() string { return hash(s) }

func hash(spec any) string {
	b, err := json.Marshal(spec)
	if err != nil { // every part of a spec can be marshalled
		panic(fmt.Sprintf("marshal spec: %v", err))
	}
	return fmt.Sprintf("%x", sha256.Sum256(b))[:12]
}

// SameTemplate reports whether both specs have the same kind, shape, labels and taints of nodes. A running CA may
// cache the properties of a group's nodes until it exits (CA
// processors/nodeinfosprovider/mixed_nodeinfos_processor.go). So these properties must not change while a group keeps
// its id.
func (s GroupSpec) SameTemplate(o GroupSpec) bool {
	return GroupSpec{}.WithTemplateOf(s).Hash() == GroupSpec{}.WithTemplateOf(o).Hash()
}

// WithTemplateOf returns s with the kind, shape, labels and taints of o.
func (s GroupSpec) WithTemplateOf(o GroupSpec) GroupSpec {
	s.Nodes, s.Shape, s.Labels, s.Taints, s.GroupTaint = o.Nodes, o.Shape, o.Labels, o.Taints, o.GroupTaint
	return s
}
