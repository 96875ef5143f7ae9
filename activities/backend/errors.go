package backend

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// What callers can meet. Match with errors.Is; each is wrapped with what was wrong, where, and what to do.
var (
	ErrUnreachable = errors.New("provider unreachable")
	ErrCredentials = errors.New("credentials refused") // always with ErrUnreachable or ErrDenied
	ErrInvalid     = errors.New("invalid")
	ErrDenied      = errors.New("denied by the provider")
	ErrInUse       = errors.New("peering in use")
	ErrShort       = errors.New("granted less than asked")
	ErrFull        = errors.New("no room at the provider") // nothing is held against it
	ErrConflict    = errors.New("conflict")
	ErrNoRoom      = errors.New("no room on this cluster") // for our own end of a peering
	ErrNotPeered   = errors.New("not peered")              // Join without an established peering: Establish first
	ErrNotYet      = errors.New("not yet")                 // Restamp: the Node is not finished; come again when it changes
)

// RefusingError says that the provider refuses this cluster as a whole. It matches ErrDenied.
type RefusingError struct{ fleet.ProviderRefusal }

func (e *RefusingError) Error() string {
	text := "the provider refuses this cluster (" + string(e.Kind) + ")"
	if !e.Until.IsZero() {
		text += " until " + e.Until.UTC().Format(time.RFC3339)
	}
	return text
}

// Unwrap makes errors.Is see ErrDenied.
func (e *RefusingError) Unwrap() error { return ErrDenied }

// Stage is a point on the way that people can look at. Stages are reached in the order below.
type Stage string

// The stages of Establish, Join, and of the way back.
const (
	StageAPIServer      Stage = "api-server"      // the provider's API server answers with our credentials
	StageNetworkConfig  Stage = "network-config"  // both clusters know each other's addresses
	StageGatewayServer  Stage = "gateway-server"  // one's gateway runs and has an address
	StageGatewayClient  Stage = "gateway-client"  // the other's runs
	StageGatewayKeys    Stage = "gateway-keys"    // each has the other's public key
	StageConnection     Stage = "connection"      // the gateways reach each other
	StageNonce          Stage = "nonce"           // the provider has filled the nonce
	StageSignedNonce    Stage = "signed-nonce"    // our cluster has signed it
	StageTenant         Stage = "tenant"          // the provider has answered the Tenant with credentials
	StageIdentity       Stage = "identity"        // our cluster has made a kubeconfig of them
	StageReachable      Stage = "reachable"       // our cluster (not only this worker) reaches the provider
	StageSliceAuth      Stage = "slice-auth"      // the slice is authenticated
	StageResources      Stage = "resources"       // the slice's resources are accepted
	StageVirtualKubelet Stage = "virtual-kubelet" // the virtual node runs its kubelet
	StageNode           Stage = "node"            // the Node is registered
	StageReady          Stage = "ready"           // the Node is Ready
	StageStamp          Stage = "stamp"           // the Node carries the instance id
	StageDrain          Stage = "drain"           // pods are leaving
	StageNodeGone       Stage = "node-gone"
	StageSliceGone      Stage = "slice-gone"
	StageIdentityGone   Stage = "identity-gone"
	StageTenantGone     Stage = "tenant-gone"
	StageNetworkGone    Stage = "network-gone"
	StageNamespacesGone Stage = "namespaces-gone" // and the nonces in them
)

// OfNetwork reports whether the stage is one of the making of a network, for which others wait longer.
func (s Stage) OfNetwork() bool {
	return slices.Contains([]Stage{StageNetworkConfig, StageGatewayServer, StageGatewayClient, StageGatewayKeys,
		StageConnection}, s)
}

// StageError says which stage was not reached, and why as far as anything told us.
type StageError struct {
	Stage   Stage
	Message string // the other side's own words where there are any
	Err     error  // the cause: a sentinel above or the context's error
}

func (e *StageError) Error() string {
	return fmt.Sprintf("waiting for %s: %s: %v", e.Stage, e.Message, e.Err)
}

// Unwrap makes errors.Is and errors.As see the cause.
func (e *StageError) Unwrap() error { return e.Err }
