package fleet

import (
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Credentials refers to the credentials of a Provider. It never contains the secrets themselves, because it is stored
// in workflow histories. Exactly one of the two fields is set.
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

// UnpeerPolicy determines whether a peering is removed when no hold uses it any more.
type UnpeerPolicy string

// These are the policies. The empty one means UnpeerLinger.
const (
	UnpeerLinger UnpeerPolicy = "linger" // the peering is removed after the offer's linger time
	UnpeerNever  UnpeerPolicy = "never"  // the peering stays
)

// DefaultLinger is the time for which an unused Peering is kept if its offer does not set LingerSeconds.
const DefaultLinger = 60 * time.Second

// Offer contains the capacity and terms that one Provider offers now.
type Offer struct {
	// Name is the offer's name in its source. It is for users only.
	Name string `json:"name"`
	// Provider is the provider's id, as it was read from the provider itself.
	Provider    string      `json:"provider"`
	Credentials Credentials `json:"credentials"`
	// Lendable contains the whole amount on offer, including the amount that holds use.
	Lendable corev1.ResourceList `json:"lendable"`
	// LargestNodes lists the provider's largest nodes. It omits a node if another node is at least as large in every
	// resource. An empty list means that the nodes are not known.
	LargestNodes []corev1.ResourceList `json:"largestNodes,omitempty"`
	// Measured reports that Lendable must still be read from the provider. It is false as soon as an offer is used.
	Measured bool `json:"-"`
	// MaxNodes bounds the number of our nodes on the provider; 0 means no bound.
	MaxNodes int               `json:"maxNodes,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	// Price is the price per node and hour. If it is 0, Prices apply.
	Price float64 `json:"price,omitempty"`
	// Prices contains the hourly prices per CPU, per GiB of resources measured in bytes, and per unit of any other
	// resource.
	Prices map[corev1.ResourceName]float64 `json:"prices,omitempty"`
	// Currency is the ISO 4217 code for Price and Prices; empty means the node groups' currency.
	Currency string `json:"currency,omitempty"`
	// Hourly is the hourly price of a node of the group that chose the offer, in the group's currency; 0 when it is
	// unknown. It is set only in the offer of an attempt.
	Hourly float64 `json:"hourly,omitempty"`
	// LatencyMilliseconds is the round trip time between the clusters; 0 means unknown.
	LatencyMilliseconds int `json:"latencyMilliseconds,omitempty"`
	// LingerSeconds is the time for which an unused peering is kept; nil means DefaultLinger.
	LingerSeconds *int64       `json:"lingerSeconds,omitempty"`
	Unpeer        UnpeerPolicy `json:"unpeer,omitempty"`
	// Class names the controller that decides on the provider's ResourceSlices; "" means the provider's default.
	Class string `json:"class,omitempty"`
	// Network describes the provider's network settings; nil means the defaults.
	Network *Network   `json:"network,omitempty"`
	Expires *time.Time `json:"expires,omitempty"`
	// Epoch changes when the offer's content changes.
	Epoch string `json:"epoch,omitempty"`
	// ReadAt orders the versions of one provider's offer: an older version never replaces a newer one.
	ReadAt time.Time `json:"readAt,omitzero"`
}

// Expired reports whether the offer has expired.
func (o Offer) Expired(now time.Time) bool { return o.Expires != nil && !now.Before(*o.Expires) }

// Linger returns the time for which the peering of this offer is kept while it is unused.
func (o Offer) Linger() time.Duration {
	if o.LingerSeconds == nil {
		return DefaultLinger
	}
	return time.Duration(*o.LingerSeconds) * time.Second
}

// ForView returns the part of the offer that views contain.
func (o Offer) ForView() *Offer {
	return &Offer{Name: o.Name, Provider: o.Provider, Credentials: o.Credentials, Hourly: o.Hourly}
}

// NetworkMode names the way in which traffic between this cluster and a Provider's nodes is set up.
type NetworkMode string

// These are the modes. The empty one means NetworkGateway.
const (
	NetworkGateway  NetworkMode = "gateway"  // made with the peering, and removed with it
	NetworkExisting NetworkMode = "existing" // made by another party; it must work
	NetworkNone     NetworkMode = "none"     // no network: pods of the two clusters cannot reach each other
)

// MaxNetworkOptions bounds Network.Options, in bytes.
const MaxNetworkOptions = 1024

// Network describes the network of a Provider. It contains no secret.
type Network struct {
	Mode NetworkMode `json:"mode,omitempty"`
	// Options is JSON that only the backend understands and checks; empty means its defaults.
	Options json.RawMessage `json:"options,omitempty"`
}

// ModeOrDefault returns the mode. A nil Network has the default mode.
func (n *Network) ModeOrDefault() NetworkMode {
	if n == nil || n.Mode == "" {
		return NetworkGateway
	}
	return n.Mode
}
