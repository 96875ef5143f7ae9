package workflows

import (
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
)

// Register tells a lane's worker its workflows and activities, by explicit name.
func Register(r worker.Registry, l Lane, a *activities.Activities) {
	act := map[Lane]map[string]any{
		LaneEntities: {activities.NameDeliver: a.Deliver, activities.NameLook: a.Look, activities.NameCompare: a.Compare,
			activities.NameObserve: a.Observe, activities.NameWitness: a.Witness,
			activities.NameSweep: a.Sweep},
		LaneDrivers: {activities.NameDiscover: a.Discover, activities.NameSelect: a.Select, activities.NameTell: a.Tell},
		LaneMaking:  {activities.NameEstablish: a.Establish, activities.NameJoin: a.Join},
		LaneRemoving: {activities.NameDrain: a.Drain, activities.NameReturn: a.Return,
			activities.NameRemovePeering: a.RemovePeering},
	}
	for name, f := range act[l] {
		r.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
	RegisterWorkflows(r, l)
}

// RegisterWorkflows tells a lane's worker, or who replays histories, its workflows.
func RegisterWorkflows(r worker.WorkflowRegistry, l Lane) {
	flows := map[Lane]map[string]any{
		LaneEntities: {TypeNodeGroup: NodeGroup, TypeProvider: Provider, TypeCompare: Compare},
		LaneDrivers: {
			TypeScaleOut: ScaleOut, TypeScaleIn: ScaleIn, TypeUndo: Undo, TypePeering: Peering, TypeUnpeering: Unpeering,
		},
	}
	for name, w := range flows[l] {
		r.RegisterWorkflowWithOptions(w, workflow.RegisterOptions{Name: name, VersioningBehavior: versioning(name)})
	}
}

// versioning is how a workflow goes on when another build is current, where workers are versioned. Those that live for
// minutes end with the build that began them; the others go on with the new one, which must be able to replay them.
func versioning(name string) workflow.VersioningBehavior {
	if name == TypeScaleOut || name == TypePeering {
		return workflow.VersioningBehaviorPinned
	}
	return workflow.VersioningBehaviorAutoUpgrade
}
