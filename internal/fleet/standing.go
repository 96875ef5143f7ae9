package fleet

import "time"

// Access names the way in which a provider's API server answers us.
type Access string

// These are the answers. The empty one means that no check was possible, which does not count against the provider.
const (
	AccessGranted Access = "granted"
	AccessRefused Access = "refused" // 401 or 403 for our credentials: it answers, and no node is lost by it
	AccessSilent  Access = "silent"  // it does not answer
	// AccessIsolated occurs only in a Standing: neither this provider nor any other one answers.
	AccessIsolated Access = "isolated"
)

// Standing describes the faults of a provider according to its entity; the zero value means no fault.
type Standing struct {
	Access Access       `json:"access,omitempty"`
	Tenant RefusingKind `json:"tenant,omitempty"`
	// Network reports that the clusters do not reach each other's pods. Local reports that the reason is our own gateway,
	// which does not run.
	Network bool `json:"network,omitempty"`
	Local   bool `json:"local,omitempty"`
	// Fault names the condition of the peering's fault on this cluster, for which no provider is to blame.
	Fault   string    `json:"fault,omitempty"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since,omitzero"`
}

// Good reports whether the provider has no fault.
func (s Standing) Good() bool { return s.Access == "" && s.Tenant == "" && !s.Network && s.Fault == "" }

// Closes reports whether no new holds are granted on the provider. These faults do not close it: a deleted Tenant,
// because another one can be requested; and an isolation or missing gateway of this cluster, because no provider is to
// blame. A divided namespace closes it, because one more node could delete the namespace.
func (s Standing) Closes() bool {
	return s.Network && !s.Local || s.Access == AccessRefused || s.Access == AccessSilent ||
		s.Tenant == RefusingCordoned ||
		s.Tenant == RefusingDrained || s.Fault == ConditionNamespaceDivided
}

// Condition returns the name of the fault; "" without one.
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
	// ConditionNetworkNotConnected: the gateways do not reach each other, or one gateway is dead.
	ConditionNetworkNotConnected = "NetworkNotConnected"
	// ConditionNoRoomForGateway: this cluster has no capacity for its gateway, or for a virtual kubelet.
	ConditionNoRoomForGateway = string(CodeNoRoom)
	// ConditionNamespaceDivided: a clusterSelector separates a provider's nodes, so Liqo may remove a namespace there.
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
