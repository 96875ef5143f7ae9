package backend

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// These are the kinds of errors that callers receive. Match them with errors.Is. Each error also describes the fault,
// its place and a remedy.
var (
	ErrUnreachable = errors.New("provider unreachable")
	ErrCredentials = errors.New("credentials refused") // always with ErrUnreachable or ErrDenied
	ErrInvalid     = errors.New("invalid")
	ErrDenied      = errors.New("denied by the provider")
	ErrInUse       = errors.New("peering in use")
	ErrShort       = errors.New("granted less than asked")
	ErrFull        = errors.New("no room at the provider") // the provider has reserved nothing for us
	ErrConflict    = errors.New("conflict")
	ErrNoRoom      = errors.New("no room on this cluster") // our own pods of a peering do not fit
	ErrNotPeered   = errors.New("not peered")              // Join without a peering: call Establish first
	ErrNotYet      = errors.New("not yet")                 // from Restamp: the Node is not finished; retry when it changes
)

// RefusingError reports that the provider refuses this cluster as a whole. It matches ErrDenied.
type RefusingError struct{ fleet.ProviderRefusal }

func (e *RefusingError) Error() string {
	text := "the provider refuses this cluster (" + string(e.Kind) + ")"
	if !e.Until.IsZero() {
		text += " until " + e.Until.UTC().Format(time.RFC3339)
	}
	return text
}

// Unwrap returns ErrDenied, so that errors.Is matches it.
func (e *RefusingError) Unwrap() error { return ErrDenied }

// Stage names a visible point of progress. Stages are reached in the order below.
type Stage string

// These are the stages of Establish and Join, and of the removal of their objects.
const (
	StageAPIServer      Stage = "api-server"      // the provider's API server answers with our credentials
	StageNetworkConfig  Stage = "network-config"  // both clusters know each other's addresses
	StageGatewayServer  Stage = "gateway-server"  // one cluster's gateway runs and has an address
	StageGatewayClient  Stage = "gateway-client"  // the other cluster's gateway runs
	StageGatewayKeys    Stage = "gateway-keys"    // each gateway has the other's public key
	StageConnection     Stage = "connection"      // the gateways reach each other
	StageNonce          Stage = "nonce"           // the provider has filled the nonce
	StageSignedNonce    Stage = "signed-nonce"    // our cluster has signed the nonce
	StageTenant         Stage = "tenant"          // the provider has answered the Tenant with credentials
	StageIdentity       Stage = "identity"        // our cluster has made a kubeconfig from these credentials
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
	StageNamespacesGone Stage = "namespaces-gone" // the namespaces and the nonces in them are gone
)

// OfNetwork reports whether the stage belongs to the creation of a network, which has a longer budget.
func (s Stage) OfNetwork() bool {
	return slices.Contains([]Stage{StageNetworkConfig, StageGatewayServer, StageGatewayClient, StageGatewayKeys,
		StageConnection}, s)
}

// StageError names the stage that was not reached, and the reason as far as it is known.
type StageError struct {
	Stage   Stage
	Message string // the message of the other cluster or component, if there is any
	Err     error  // the cause: one of the errors above or the context's error
}

func (e *StageError) Error() string {
	return fmt.Sprintf("waiting for %s: %s: %v", e.Stage, e.Message, e.Err)
}

// Unwrap returns the cause.
func (e *StageError) Unwrap() error { return e.Err }
