package workflows

import (
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
)

// Register tells a worker every workflow and activity, by explicit name. See RegisterWorkflows.
func Register(r worker.Registry, a *activities.Activities, registered func() bool) {
	RegisterWorkflows(r, registered)
	for name, f := range map[string]any{
		activities.NameDiscover: a.Discover, activities.NameSelect: a.Select, activities.NamePeer: a.Peer,
		activities.NameWaitForVirtualNode: a.WaitForVirtualNode, activities.NameDrain: a.Drain, activities.NameUnpeer: a.Unpeer,
		activities.NameEstablishPeering: a.EstablishPeering, activities.NameRemovePeering: a.RemovePeering,
		activities.NameRecoverGroup: a.RecoverGroup, activities.NameRecoverProvider: a.RecoverProvider,
	} {
		r.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
}

// RegisterWorkflows tells a worker, or who replays histories, every workflow. They ask registered whether the namespace has
// our search attributes now; the answer may change, and must not block.
func RegisterWorkflows(r worker.WorkflowRegistry, registered func() bool) {
	for name, w := range map[string]any{
		TypeNodeGroup: with(registered, NodeGroup), TypeProvider: with(registered, Provider),
		TypePeering: with(registered, Peering), TypeUnpeering: with(registered, Unpeering),
		TypeScaleOut: with(registered, ScaleOut), TypeScaleIn: with(registered, ScaleIn), TypeUndo: with(registered, Undo),
	} {
		r.RegisterWorkflowWithOptions(w, workflow.RegisterOptions{Name: name})
	}
}

// with hands a workflow the worker's answer.
func with[T any](registered func() bool, run func(workflow.Context, T) error) func(workflow.Context, T) error {
	return func(ctx workflow.Context, in T) error {
		return run(workflow.WithValue(ctx, registeredKey{}, registered), in)
	}
}
