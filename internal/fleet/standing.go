package fleet

import "time"

// Access is how a provider's API server answers us.
type Access string

// The answers. The empty one is none: nobody could ask, which says nothing of the provider.
const (
	AccessGranted Access = "granted"
	AccessRefused Access = "refused" // 401 or 403 for our credentials: it answers, and is never a verdict on nodes
	AccessSilent  Access = "silent"  // it does not answer
	// AccessIsolated is a Standing's only: it does not answer, and neither does anybody else.
	AccessIsolated Access = "isolated"
)

// Standing is what is wrong with a provider in the eyes of its entity; the zero value is nothing.
type Standing struct {
	Access Access       `json:"access,omitempty"`
	Tenant RefusingKind `json:"tenant,omitempty"`
	// Network: the clusters do not reach each other's pods, and with Local it is our own gateway that does not run.
	Network bool `json:"network,omitempty"`
	Local   bool `json:"local,omitempty"`
	// Fault is the condition of what is wrong with the peering on this cluster, for which no provider is to blame.
	Fault   string    `json:"fault,omitempty"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since,omitzero"`
}

// Good reports whether nothing is wrong.
func (s Standing) Good() bool { return s.Access == "" && s.Tenant == "" && !s.Network && s.Fault == "" }

// Closes reports whether nothing new is made on the provider. One that has deleted our Tenant may be asked for another,
// and while this cluster is isolated, or has no gateway, no provider is to blame. While a namespace is divided one more
// node could cost it.
func (s Standing) Closes() bool {
	return s.Network && !s.Local || s.Access == AccessRefused || s.Access == AccessSilent ||
		s.Tenant == RefusingCordoned ||
		s.Tenant == RefusingDrained || s.Fault == ConditionNamespaceDivided
}

// Condition names what is wrong; "" for nothing.
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

// The conditions that people look for.
const (
	ConditionCredentialsRefused = "CredentialsRefused"
	ConditionConsumerIsolated   = "ConsumerIsolated"
	ConditionUnreachable        = "Unreachable"
	// ConditionNetworkNotConnected: the gateways do not reach each other, or one of them is dead.
	ConditionNetworkNotConnected = "NetworkNotConnected"
	// ConditionNoRoomForGateway: this cluster has no room for its gateway, or for a virtual kubelet.
	ConditionNoRoomForGateway = string(CodeNoRoom)
	// ConditionNamespaceDivided: a clusterSelector tells a provider's nodes apart, so Liqo may remove a namespace there.
	ConditionNamespaceDivided = "NamespaceDivided"
)

// Conditions lists every condition of a provider.
var Conditions = []string{
	ConditionCredentialsRefused, ConditionConsumerIsolated, ConditionUnreachable, "Tenant" + string(RefusingCordoned),
	"Tenant" + string(RefusingDrained), "Tenant" + string(RefusingRemoved), ConditionNetworkNotConnected,
	ConditionNoRoomForGateway, ConditionNamespaceDivided,
}

// Fault is what is wrong with a peering on this cluster: a condition, and in words what it is and what to do.
type Fault struct {
	Condition string `json:"condition,omitempty"`
	Message   string `json:"message,omitempty"`
}
