package fleet

import (
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Credentials say where the access to a Provider lies; they never carry it, because they enter workflow histories.
// Exactly one of the two is set.
type Credentials struct {
	// KubeconfigFile is a path on the worker's file system.
	KubeconfigFile string `json:"kubeconfigFile,omitempty"`
	// SecretRef names a key of a Secret in the consumer cluster.
	SecretRef *SecretRef `json:"secretRef,omitempty"`
}

// SecretRef names one key of a Secret in the consumer cluster.
type SecretRef struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Key defaults to "kubeconfig".
	Key string `json:"key,omitempty"`
}

// UnpeerPolicy says what becomes of a Peering that nobody holds any longer.
type UnpeerPolicy string

// The policies. The empty one means UnpeerLinger.
const (
	UnpeerLinger UnpeerPolicy = "linger" // removed after the offer's linger time
	UnpeerNever  UnpeerPolicy = "never"  // kept
)

// DefaultLinger is how long an unused Peering is kept when its offer does not say.
const DefaultLinger = 60 * time.Second

// Offer is what one Provider would lend now.
type Offer struct {
	// Name is the offer's name in its source, for people.
	Name string `json:"name"`
	// Provider is the provider's id, as it was read from the provider itself.
	Provider    string      `json:"provider"`
	Credentials Credentials `json:"credentials"`
	// Lendable is the whole amount on offer, before holds.
	Lendable corev1.ResourceList `json:"lendable"`
	// LargestNodes are the provider's largest nodes, of which none has less of everything than another; none means that
	// nothing is known of them.
	LargestNodes []corev1.ResourceList `json:"largestNodes,omitempty"`
	// Measured: Lendable is still to be read from the provider. No offer that is in force has it.
	Measured bool `json:"-"`
	// MaxNodes bounds the number of nodes; 0 means no bound.
	MaxNodes int               `json:"maxNodes,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	// Price is per node and hour; 0 leaves it to Prices.
	Price float64 `json:"price,omitempty"`
	// Prices are per hour and CPU, GiB of what is measured in bytes, or unit of any other resource.
	Prices map[corev1.ResourceName]float64 `json:"prices,omitempty"`
	// Currency is that of both, an ISO 4217 code; empty means the node groups'.
	Currency string `json:"currency,omitempty"`
	// Hourly is what a node of the group that chose the offer costs there, in the group's currency; 0 when that is
	// unknown. Only an attempt's offer has it.
	Hourly float64 `json:"hourly,omitempty"`
	// LatencyMilliseconds is the round trip between the clusters; 0 means unknown.
	LatencyMilliseconds int `json:"latencyMilliseconds,omitempty"`
	// LingerSeconds is how long the Peering is kept unused; nil means DefaultLinger.
	LingerSeconds *int64       `json:"lingerSeconds,omitempty"`
	Unpeer        UnpeerPolicy `json:"unpeer,omitempty"`
	// Class is by whom the provider has requests for nodes decided; "" means whom it has by default.
	Class string `json:"class,omitempty"`
	// Network is the provider's; nil means the default one.
	Network *Network   `json:"network,omitempty"`
	Expires *time.Time `json:"expires,omitempty"`
	// Epoch changes when the offer's content changes.
	Epoch string `json:"epoch,omitempty"`
	// ReadAt orders what was read of one provider's offer: an older one never replaces a newer one.
	ReadAt time.Time `json:"readAt,omitzero"`
}

// Expired reports whether the offer has ended.
func (o Offer) Expired(now time.Time) bool { return o.Expires != nil && !now.Before(*o.Expires) }

// Linger is how long the Peering of this offer is kept unused.
func (o Offer) Linger() time.Duration {
	if o.LingerSeconds == nil {
		return DefaultLinger
	}
	return time.Duration(*o.LingerSeconds) * time.Second
}

// Told is what a view tells of the offer.
func (o Offer) Told() *Offer {
	return &Offer{Name: o.Name, Provider: o.Provider, Credentials: o.Credentials, Hourly: o.Hourly}
}

// NetworkMode says how traffic between this cluster and a Provider's nodes comes about.
type NetworkMode string

// The modes. The empty one means NetworkGateway.
const (
	NetworkGateway  NetworkMode = "gateway"  // made with the peering, and removed with it
	NetworkExisting NetworkMode = "existing" // somebody else's, which must work
	NetworkNone     NetworkMode = "none"     // none: pods on the nodes reach nothing here, nor are they reached
)

// MaxNetworkOptions bounds Network.Options, in bytes.
const MaxNetworkOptions = 1024

// Network is the network of a Provider. It holds no secret.
type Network struct {
	Mode NetworkMode `json:"mode,omitempty"`
	// Options are JSON that only the backend understands and checks; empty means its defaults.
	Options json.RawMessage `json:"options,omitempty"`
}

// ModeOrDefault is the mode; a nil Network has the default one.
func (n *Network) ModeOrDefault() NetworkMode {
	if n == nil || n.Mode == "" {
		return NetworkGateway
	}
	return n.Mode
}
