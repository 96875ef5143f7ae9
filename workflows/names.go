package workflows

import (
	"cmp"
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// These are the names of workflow types, signals, queries and memo keys. Histories and operators' command lines contain
// them: never rename one.
const (
	TypeNodeGroup = "NodeGroup"
	TypeProvider  = "Provider"
	TypePeering   = "Peering"
	TypeUnpeering = "Unpeering"
	TypeScaleOut  = "ScaleOut"
	TypeScaleIn   = "ScaleIn"
	TypeUndo      = "Undo"

	SignalViews       = "views"       // to a node group: []fleet.View, from drivers
	SignalFacts       = "facts"       // to a node group: []fleet.Fact, from watchers of nodes
	SignalRetry       = "retry"       // to a node group, by an operator: let stuck instances continue
	SignalHolds       = "holds"       // to a provider: []fleet.HoldRequest, from drivers, undos, the sweep and the peering
	SignalReport      = "report"      // to a provider: fleet.PeeringReport
	SignalCordon      = "cordon"      // to a provider, by an operator: true to cordon it, false to uncordon it
	SignalDifferences = "differences" // to a node group or a provider: fleet.Differences, from the observer
	SignalOrder       = "order"       // to a driver: fleet.Order, from its group
	SignalAnswer      = "answer"      // to a driver: fleet.Answer, from its provider

	// QueryDays is the query for the costs of a node group's past days: []money.CostDay. They are not in the memo, because
	// 400 days of twenty providers are 57 KiB, and a visibility store on MySQL accepts 64 KiB for a whole memo.
	QueryDays = "days"

	// MemoSnapshot is the memo key under which an entity publishes its state, see DecodeMemo.
	MemoSnapshot = "snapshot"
	// MemoChoices is the memo key under which a node group publishes its last decisions: []fleet.Choice.
	MemoChoices = "choices"
)

// These are the search attributes with which users find our workflows in Temporal's list. All have the type Keyword and
// are set when a workflow starts. They affect no decision.
const (
	AttributeGroup    = "LiqoGroup"
	AttributeInstance = "LiqoInstance"
	AttributeProvider = "LiqoProvider"
)

// SearchAttributes lists the names of all search attributes.
var SearchAttributes = []string{AttributeGroup, AttributeInstance, AttributeProvider}

// The ids below are unique within a hub. Hub.ID adds the hub.

// NodeGroupID returns the id of a group's entity workflow.
func NodeGroupID(group string) string { return "nodegroup/" + group }

// ProviderID returns the id of a provider's entity workflow.
func ProviderID(provider string) string { return "provider/" + provider }

// PeeringID returns the id of the workflow that makes or repairs a peering. An operator may cancel this workflow.
func PeeringID(provider string) string { return "peering/" + provider }

// UnpeeringID returns the id of the workflow that removes a peering.
func UnpeeringID(provider string) string { return "unpeering/" + provider }

// ScaleOutID returns the id of the workflow that makes an instance Ready.
func ScaleOutID(instance string) string { return DriverID(fleet.ScaleOut, instance) }

// ScaleInID returns the id of the workflow that releases an instance.
func ScaleInID(instance string) string { return DriverID(fleet.ScaleIn, instance) }

// DriverID returns the id of the driver of an instance. A driver is the workflow that makes the instance Ready or
// releases it, depending on kind.
func DriverID(kind fleet.DriverKind, instance string) string { return string(kind) + "/" + instance }

// UndoID returns the id of the workflow that removes the objects of a failed attempt.
func UndoID(instance string, attempt int) string {
	return fmt.Sprintf("undo/%s-%d", instance, attempt)
}

// TaskQueue is the default name of task queues, see Hub.TaskQueue.
const TaskQueue = "liqo-autoscaler"

// Hub is an installation's name, as checked by fleet.ValidHub. Installations with different hubs can share a Temporal
// namespace: the workflow ids and the task queue contain the hub's name, except for fleet.DefaultHub. "" also means
// fleet.DefaultHub.
type Hub string

func (h Hub) named() bool { return h != "" && h != fleet.DefaultHub }

// Name returns the hub's name, or the default name for "".
func (h Hub) Name() string { return cmp.Or(string(h), fleet.DefaultHub) }

// ID returns one of the ids above for this hub, for example edge/nodegroup/standard.
func (h Hub) ID(id string) string {
	if h.named() {
		return string(h) + "/" + id
	}
	return id
}

// TaskQueue returns the task queue of this hub's workflows and activities. The queue's name begins with the parameter
// name, or with the constant TaskQueue if name is "". Each hub has its own queue, because a worker works for one
// cluster only.
func (h Hub) TaskQueue(name string) string {
	name = cmp.Or(name, TaskQueue)
	if h.named() {
		return name + "-" + string(h)
	}
	return name
}

// inHub returns one of the ids above for the hub of the calling workflow.
func inHub(ctx workflow.Context, id string) string {
	own := strings.Split(workflow.GetInfo(ctx).WorkflowExecution.ID, "/") // hub, kind and name, or only kind and name
	if len(own) == 3 {
		return Hub(own[0]).ID(id)
	}
	return id
}

// Lane names one of the task queues of a hub. Every worker process runs one Temporal worker for each lane, so that
// slow or stuck work does not delay the other lanes.
type Lane string

// These are the lanes.
const (
	LaneEntities Lane = ""          // node groups, providers, the hub, and the entities' commands and recovery
	LaneDrivers  Lane = "-drivers"  // the other workflows with their short activities
	LaneMaking   Lane = "-making"   // Establish and Join
	LaneRemoving Lane = "-removing" // Drain, Return and RemovePeering
)

// Lanes lists every lane.
var Lanes = []Lane{LaneEntities, LaneDrivers, LaneMaking, LaneRemoving}

// Queue returns the lane's task queue. The parameter entities is the task queue of LaneEntities.
func (l Lane) Queue(entities string) string { return entities + string(l) }

// queue returns the task queue of a lane in the hub of the calling workflow.
func queue(ctx workflow.Context, l Lane) string {
	own := workflow.GetInfo(ctx).TaskQueueName
	for _, lane := range Lanes[1:] {
		if base, ok := strings.CutSuffix(own, string(lane)); ok {
			return l.Queue(base)
		}
	}
	return l.Queue(own)
}
