package fleet

import "time"

// Access classifies the answer of a provider's API server to our requests.
type Access string

// These are the classes. The empty one means that no check was possible, which does not count against the provider.
const (
	AccessGranted Access = "granted"
	AccessRefused Access = "refused" // 401 or 403 for our credentials: the provider answers, so no node is lost
	AccessSilent  Access = "silent"  // the provider does not answer
	// AccessIsolated occurs only in a Standing: no provider answers at all.
	AccessIsolated Access = "isolated"
)

// Standing describes the faults of a provider according to its entity. The zero value means no fault.
type Standing struct {
	Access Access       `json:"access,omitempty"`
	Tenant RefusingKind `json:"tenant,omitempty"`
	// Network reports that the clusters do not reach each other's pods. Local reports that the reason is our own gateway,
	// which does not run.
	Network bool `json:"network,omitempty"`
	Local   bool `json:"local,omitempty"`
	// Fault names the condition of a fault that the peering has on this cluster. No provider is to blame for this
	// fault.
	Fault   string    `json:"fault,omitempty"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since,omitzero"`
}

// Good reports whether the provider has no fault.
func (s Standing) Good() bool { return s.Access == "" && s.Tenant == "" && !s.Network && s.Fault == "" }

// Closes reports whether the provider grants no new holds because of its faults. A deleted Tenant does not close the
// provider, because Establish can make another Tenant. An isolation or a missing gateway of this cluster does not close
// it either, because no provider is to blame. The fault ConditionNamespaceDivided does close the provider: a
// clusterSelector selects only some of its nodes, and one more node could make Liqo delete the namespace there.
func (s Standing) Closes() bool {
	return s.Network && !s.Local || s.Access == AccessRefused || s.Access == AccessSilent ||
		s.Tenant == RefusingCordoned ||
		s.Tenant == RefusingDrained || s.Fault == ConditionNamespaceDivided
}

// Condition returns the name of the fault, or "" without a fault.
func (s Standing) Condition() string {
	switch {
	case s.Access == AccessRefused:
		return ConditionCredentialsRefused
	case s.Access == AccessSilent:
		return ConditionUnreachable
	case s.Access == AccessIsolated:
		return ConditionConsumerIsolated
	case s.Tenant != "":
		return "Tenant" + string(s.Tenant)
	case s.Fault != "":
		return s.Fault
	case s.Network:
		return ConditionNetworkNotConnected
	default:
		return ""
	}
}

// These are the conditions that users see.
const (
	ConditionCredentialsRefused = "CredentialsRefused"
	ConditionConsumerIsolated   = "ConsumerIsolated"
	ConditionUnreachable        = "Unreachable"
	// ConditionNetworkNotConnected means that the gateways do not reach each other, or that one gateway is dead.
	ConditionNetworkNotConnected = "NetworkNotConnected"
	// ConditionNoRoomForGateway means that this cluster has no capacity for its gateway, or for a virtual kubelet.
	ConditionNoRoomForGateway = string(CodeNoRoom)
	// ConditionNamespaceDivided means that a clusterSelector selects only some of a provider's nodes, so that Liqo may
	// remove a namespace there.
	ConditionNamespaceDivided = "NamespaceDivided"
)

// Conditions lists every condition of a provider.
var Conditions = []string{
	ConditionCredentialsRefused, ConditionConsumerIsolated, ConditionUnreachable, "Tenant" + string(RefusingCordoned),
	"Tenant" + string(RefusingDrained), "Tenant" + string(RefusingRemoved), ConditionNetworkNotConnected,
	ConditionNoRoomForGateway, ConditionNamespaceDivided,
}

// Fault describes the fault of a peering on this cluster: a condition, and a text with the fault and its remedy.
type Fault struct {
	Condition string `json:"condition,omitempty"`
	Message   string `json:"message,omitempty"`
}
