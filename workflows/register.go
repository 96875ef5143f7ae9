package workflows

import (
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
)

// Register tells a worker every workflow and activity, by explicit name.
func Register(r worker.Registry, a *activities.Activities) {
	for name, w := range map[string]any{
		TypeNodeGroup: NodeGroup, TypeProvider: Provider, TypePeering: Peering, TypeUnpeering: Unpeering,
		TypeScaleOut: ScaleOut, TypeScaleIn: ScaleIn, TypeUndo: Undo,
	} {
		r.RegisterWorkflowWithOptions(w, workflow.RegisterOptions{Name: name})
	}
	for name, f := range map[string]any{
		activities.NameDiscover: a.Discover, activities.NameSelect: a.Select, activities.NamePeer: a.Peer,
		activities.NameWaitForVirtualNode: a.WaitForVirtualNode, activities.NameDrain: a.Drain, activities.NameUnpeer: a.Unpeer,
		activities.NameEstablishPeering: a.EstablishPeering, activities.NameRemovePeering: a.RemovePeering,
		activities.NameRecoverGroup: a.RecoverGroup, activities.NameRecoverProvider: a.RecoverProvider,
	} {
		r.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
}
