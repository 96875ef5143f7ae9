package workflows

import (
	"strings"

	"go.temporal.io/sdk/workflow"
)

// Lane is one of the task queues of a hub. Each has a worker of its own in every worker process, so that what takes
// long, or is stuck, holds nothing else up.
type Lane string

// The lanes.
const (
	LaneEntities Lane = ""          // node groups, providers, their commands, recovery and comparison
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
