package worker

import (
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// register registers the workflows and activities of a lane with its worker, by explicit name.
func register(r worker.Registry, l workflows.Lane, a *activities.Activities, cluster workflows.Cluster) {
	act := map[workflows.Lane]map[string]any{
		workflows.LaneEntities: {
			activities.NameDeliver: a.Deliver, activities.NameInspect: a.Inspect,
		},
		workflows.LaneDrivers: {
			activities.NameDiscover: a.Discover, activities.NameSelect: a.Select, activities.NameReport: a.Report,
		},
		workflows.LaneMaking: {activities.NameEstablish: a.Establish, activities.NameJoin: a.Join},
		workflows.LaneRemoving: {
			activities.NameDrain: a.Drain, activities.NameReturn: a.Return, activities.NameRemovePeering: a.RemovePeering,
		},
	}
	for name, f := range act[l] {
		r.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
	RegisterWorkflows(r, l, cluster)
}

// RegisterWorkflows registers the workflows of a lane with the worker of a cluster, or with a replayer of histories.
func RegisterWorkflows(r worker.WorkflowRegistry, l workflows.Lane, cluster workflows.Cluster) {
	flows := map[workflows.Lane]map[string]any{
		workflows.LaneEntities: {
			workflows.TypeNodeGroup: cluster.NodeGroup, workflows.TypeProvider: workflows.Provider,
			workflows.TypeHub: workflows.RunHub,
		},
		workflows.LaneDrivers: {
			workflows.TypeScaleOut: workflows.ScaleOut, workflows.TypeScaleIn: workflows.ScaleIn,
			workflows.TypeUndo: workflows.Undo, workflows.TypePeering: workflows.Peering,
			workflows.TypeUnpeering: workflows.Unpeering,
		},
	}
	for name, w := range flows[l] {
		r.RegisterWorkflowWithOptions(w, workflow.RegisterOptions{Name: name, VersioningBehavior: versioning(name)})
	}
}

// versioning returns how Temporal assigns a workflow of this type to builds, if workers are versioned. Scale-outs and
// peerings live for minutes, so each stays on the build that started it. All other workflows move to the build that
// becomes current, and this build must be able to replay them.
func versioning(name string) workflow.VersioningBehavior {
	if name == workflows.TypeScaleOut || name == workflows.TypePeering {
		return workflow.VersioningBehaviorPinned
	}
	return workflow.VersioningBehaviorAutoUpgrade
}
