package workflows

import (
	"cmp"
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Names under which everything is registered and addressed. They are in histories and on operators' command lines:
// never rename one.
const (
	TypeNodeGroup = "NodeGroup"
	TypeProvider  = "Provider"
	TypePeering   = "Peering"
	TypeUnpeering = "Unpeering"
	TypeScaleOut  = "ScaleOut"
	TypeScaleIn   = "ScaleIn"
	TypeUndo      = "Undo"

	SignalViews       = "views"       // to a node group: []fleet.View, from drivers
	SignalFacts       = "facts"       // to a node group: []fleet.Fact, from watching nodes
	SignalRetry       = "retry"       // to a node group, by an operator: set stuck instances free
	SignalHolds       = "holds"       // to a provider: []fleet.HoldRequest, from drivers, undos, the sweep and the peering
	SignalReport      = "report"      // to a provider: fleet.PeeringReport
	SignalCordon      = "cordon"      // to a provider, by an operator: true to cordon it, false to uncordon it
	SignalDifferences = "differences" // to both: fleet.Differences, from the observer
	SignalOrder       = "order"       // to a driver: fleet.Order, from its group
	SignalAnswer      = "answer"      // to a driver: fleet.Answer, from its provider

	// QueryDays is the query for the costs of a node group's days that are over: []money.CostDay. They are not in the
	// memo, because 400 days of twenty providers are 57 KiB, and a visibility store on MySQL takes 64 KiB for a whole
	// memo.
	QueryDays = "days"

	// MemoSnapshot is the memo key under which an entity publishes its state, see DecodeMemo.
	MemoSnapshot = "snapshot"
	// MemoChoices is the memo key under which a node group publishes its last decisions: []fleet.Choice.
	MemoChoices = "choices"
)

// Search attributes by which people find our workflows in Temporal's list, all of type Keyword, set when a workflow
// starts. Nothing decides by them.
const (
	AttributeGroup    = "LiqoGroup"
	AttributeInstance = "LiqoInstance"
	AttributeProvider = "LiqoProvider"
)

// SearchAttributes are the names of all of them.
var SearchAttributes = []string{AttributeGroup, AttributeInstance, AttributeProvider}

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
func ScaleOutID(instance string) string { return DriverID(fleet.ScaleOut, instance) }

// ScaleInID is the id of the workflow that takes an instance back.
func ScaleInID(instance string) string { return DriverID(fleet.ScaleIn, instance) }

// DriverID is the id of the workflow of that kind that drives an instance.
func DriverID(kind fleet.DriverKind, instance string) string { return string(kind) + "/" + instance }

// UndoID is the id of the workflow that takes a failed attempt back.
func UndoID(instance string, attempt int) string {
	return fmt.Sprintf("undo/%s-%d", instance, attempt)
}

// TaskQueue is the default name of task queues, see Hub.TaskQueue.
const TaskQueue = "liqo-autoscaler"

// Hub is an installation's name, as fleet.ValidHub has it. Installations share a Temporal namespace when their hubs
// differ: all but fleet.DefaultHub, which "" means too, have their name in workflow ids and in their task queue.
type Hub string

func (h Hub) named() bool { return h != "" && h != fleet.DefaultHub }

// Name is the hub's, also of the default one.
func (h Hub) Name() string { return cmp.Or(string(h), fleet.DefaultHub) }

// ID makes one of the ids above that of this hub: edge/nodegroup/standard.
func (h Hub) ID(id string) string {
	if h.named() {
		return string(h) + "/" + id
	}
	return id
}

// TaskQueue is what all workflows and activities of this hub wait in: one name, "" means TaskQueue, makes a queue for
// each hub, because a worker answers for its own cluster only.
func (h Hub) TaskQueue(name string) string {
	name = cmp.Or(name, TaskQueue)
	if h.named() {
		return name + "-" + string(h)
	}
	return name
}

// inHub makes one of the ids above that of the hub of the workflow that asks.
func inHub(ctx workflow.Context, id string) string {
	own := strings.Split(workflow.GetInfo(ctx).WorkflowExecution.ID, "/") // hub, kind and name, or kind and name
	if len(own) == 3 {
		return Hub(own[0]).ID(id)
	}
	return id
}

// Lane is one of the task queues of a hub. Each has a worker of its own in every worker process, so that what takes
// long, or is stuck, holds nothing else up.
type Lane string

// The lanes.
const (
	LaneEntities Lane = ""          // node groups, providers, the hub, and the entities' commands and recovery
	LaneDrivers  Lane = "-drivers"  // the other workflows with their short activities
	LaneMaking   Lane = "-making"   // establish and join
	LaneRemoving Lane = "-removing" // drain, return, remove a peering
)

// Lanes lists every lane.
var Lanes = []Lane{LaneEntities, LaneDrivers, LaneMaking, LaneRemoving}

// Queue is the lane's task queue beside that of the entities.
func (l Lane) Queue(entities string) string { return entities + string(l) }

// queue is the task queue of a lane in the hub of the workflow that asks.
func queue(ctx workflow.Context, l Lane) string {
	own := workflow.GetInfo(ctx).TaskQueueName
	for _, lane := range Lanes[1:] {
		if base, ok := strings.CutSuffix(own, string(lane)); ok {
			return l.Queue(base)
		}
	}
	return l.Queue(own)
}
