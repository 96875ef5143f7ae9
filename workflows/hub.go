package workflows

import (
	"cmp"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// Hub is an installation's name, as fleet.ValidHub has it. Installations share a Temporal namespace when their hubs
// differ: all but fleet.DefaultHub, which "" means too, have their name in workflow ids and in their task queue.
type Hub string

func (h Hub) named() bool { return h != "" && h != fleet.DefaultHub }

// Name is the hub's, also of the default one.
func (h Hub) Name() string { return cmp.Or(string(h), fleet.DefaultHub) }

// ID makes one of the ids of names.go that of this hub: edge/nodegroup/standard.
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

// here makes one of the ids of names.go that of the hub of the workflow that asks.
func here(ctx workflow.Context, id string) string {
	own := strings.Split(workflow.GetInfo(ctx).WorkflowExecution.ID, "/") // hub, kind and name, or kind and name
	if len(own) == 3 {
		return Hub(own[0]).ID(id)
	}
	return id
}
