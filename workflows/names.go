package workflows

import "github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"

// Names under which everything is registered and addressed. They are in histories and on operators' command lines: never
// rename one.
const (
	TypeNodeGroup = "NodeGroup"
	TypeProvider  = "Provider"
	TypePeering   = "Peering"
	TypeUnpeering = "Unpeering"
	TypeScaleOut  = "ScaleOut"
	TypeScaleIn   = "ScaleIn"
	TypeUndo      = "Undo"

	UpdateConfigure = "configure"
	UpdateGrow      = "grow"
	UpdateShrink    = "shrink"
	UpdateRelease   = "release" // of a node group: instances; of a provider: a hold
	UpdateAcquire   = "acquire"

	SignalReport = "report" // a driver tells its entity what happened
	SignalLeave  = "leave"  // to scale-out: CA asked the instance back
	SignalRetry  = "retry"  // to a node group: set stuck instances free
	SignalFact   = "fact"   // to a node group: what somebody who watches nodes saw
	SignalBroken = "broken" // to a provider: a step found the peering broken

	// MemoSnapshot is the memo key under which an entity publishes its state.
	MemoSnapshot = "snapshot"
)

// TaskQueue is the default name of task queues, see Hub.TaskQueue.
const TaskQueue = "liqo-autoscaler"

// The ids below are those within a hub: see Hub.ID.

// NodeGroupID is the id of a group's entity workflow.
func NodeGroupID(group string) string { return "nodegroup/" + group }

// ProviderID is the id of a provider's entity workflow.
func ProviderID(provider string) string { return "provider/" + provider }

// PeeringID is the id of the workflow that makes or repairs a peering; it is what an operator cancels.
func PeeringID(provider string) string { return "peering/" + provider }

// UnpeeringID is the id of the workflow that removes a peering.
func UnpeeringID(provider string) string { return "unpeering/" + provider }

// ScaleOutID is the id of the workflow that makes an instance Ready.
func ScaleOutID(instance string) string { return "scale-out/" + instance }

// ScaleInID is the id of the workflow that takes an instance back.
func ScaleInID(instance string) string { return "scale-in/" + instance }

// UndoID is the id of the workflow that takes a failed attempt back.
func UndoID(instance string, attempt int) string {
	return "undo/" + fleet.ObjectName(instance, attempt)
}
