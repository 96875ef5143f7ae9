package fleet

import "encoding/json"

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
