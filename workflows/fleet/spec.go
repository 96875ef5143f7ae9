package fleet

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/money"
)

// GroupSpec is a NodeGroup: one class of capacity CA may grow. An instance freezes its copy when it is booked.
type GroupSpec struct {
	// ID names the group to CA and in instance names: a DNS-1123 label of at most 24 characters.
	ID string `json:"id" validate:"required,groupid"`
	// Min is told to CA, which raises the group to it only with --enforce-node-group-min-size.
	Min int `json:"min" validate:"gte=0,ltefield=Max"`
	// Max bounds the target size. A larger IncreaseSize is refused whole.
	Max int `json:"max" validate:"gte=1,lte=1000"`
	// Shape is exactly what each node has, as capacity and as allocatable: cpu, memory and pods at least.
	Shape corev1.ResourceList `json:"shape,omitempty" validate:"required_without=Sizes"`
	// Sizes, in place of Shape, derive a group for each of several shapes. No instance has them.
	Sizes []Size `json:"sizes,omitempty" validate:"omitempty,min=1,max=20,dive"`
	// Nodes are virtual (Liqo's, the default) or machine (of a worker with --backend microvm); all of the hub's are alike.
	Nodes NodeKind `json:"nodes,omitempty" validate:"omitempty,oneof=virtual machine"`
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
	// Per derives groups from the offers that the selector matches: one for each provider, or for each value of an offer's
	// label (label:<key>). The default, any, is one group over all of them.
	Per string `json:"per,omitempty" validate:"omitempty,per"`
	// MinPerGroup is the min of each derived group.
	MinPerGroup int `json:"minPerGroup,omitempty" validate:"gte=0,ltefield=Max"`
	// PriceFactor is how many times an offer's price per node a node of the group costs; 0 means once.
	PriceFactor float64 `json:"priceFactor,omitempty" validate:"gte=0"`
	// Currency is that of all prices, an ISO 4217 code and the same for all groups; empty means DefaultCurrency. Offers
	// that are priced in another one are not used: nobody can say which is the cheaper.
	Currency string `json:"currency,omitempty" validate:"omitempty,iso4217"`
	// Selection weighs what decides among the offers that fit; nil means the price alone.
	Selection *Selection `json:"selection,omitempty"`
	// Standby is how many providers the group keeps peered although it has no node there, so that the next node there
	// needs a slice only: at most 5. Default 0.
	Standby int     `json:"standby,omitempty" validate:"gte=0,lte=5"`
	Budgets Budgets `json:"budgets,omitempty"`
	// Spending bounds what the group's nodes cost; nil means not at all. Each derived group has its own.
	Spending *money.Spending `json:"spending,omitempty"`
}

// DefaultCurrency is that of node groups that name none, an ISO 4217 code.
const DefaultCurrency = "USD"

// CurrencyOrDefault is the currency of the group's prices.
func (s GroupSpec) CurrencyOrDefault() string { return cmp.Or(s.Currency, DefaultCurrency) }

// Size is one of the shapes that a group's entry stands for.
type Size struct {
	// Name becomes part of the group's id: a DNS-1123 label.
	Name string `json:"name" validate:"required,sizename"`
	// Shape is as a group's.
	Shape corev1.ResourceList `json:"shape,omitempty" validate:"required"`
	// PriceFactor is as a group's; 0 means in proportion to the shapes of the first size and this one.
	PriceFactor float64 `json:"priceFactor,omitempty" validate:"gte=0"`
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
		if d.Duration <= 0 {
			d.Duration = def
		}
		return d
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
	}
}
