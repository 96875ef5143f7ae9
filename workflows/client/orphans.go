package client

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/api/deployment/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflow/v1"
)

// orphanedFor is the time after which a workflow counts as orphaned, if it is pinned to a version that has no poller.
// Temporal lists a poller for five minutes after its last poll, but not across a restart of Temporal.
const orphanedFor = time.Minute

// absent records the versions of workers without a poller, each with the time at which this process first found no
// poller.
type absent struct {
	mu    sync.Mutex
	since map[[2]string]time.Time // by deployment and build
}

// orphaned reports whether a running workflow is pinned to a version that has had no worker for about five minutes.
// Temporal does not give the workflow's tasks to any other version.
func (s *Single) orphaned(ctx context.Context, w *workflow.WorkflowExecutionInfo) (bool, error) {
	version := pinned(w.GetVersioningInfo())
	if version == nil {
		return false, nil
	}
	queue, err := s.temporal.DescribeTaskQueue(ctx, w.GetTaskQueue(), enums.TASK_QUEUE_TYPE_WORKFLOW)
	if err != nil {
		return false, err
	}
	key := [2]string{version.GetDeploymentName(), version.GetBuildId()}
	polled := len(queue.GetPollers()) == 0 // Temporal was restarted, and has no list of pollers yet
	for _, p := range queue.GetPollers() {
		of := p.GetDeploymentOptions()
		polled = polled || key == [2]string{of.GetDeploymentName(), of.GetBuildId()}
	}
	s.absent.mu.Lock()
	defer s.absent.mu.Unlock()
	if polled {
		delete(s.absent.since, key)
		return false, nil
	}
	since, known := s.absent.since[key]
	if !known {
		if s.absent.since == nil {
			s.absent.since = map[[2]string]time.Time{}
		}
		since = s.now()
		s.absent.since[key] = since
	}
	return s.now().Sub(since) >= orphanedFor, nil
}

// pinned returns the only version that may continue a workflow. It returns nil when any version may. An operator's
// override takes precedence.
func pinned(v *workflow.WorkflowExecutionVersioningInfo) *deployment.WorkerDeploymentVersion {
	if o := v.GetVersioningOverride(); o != nil {
		return o.GetPinned().GetVersion()
	}
	if v.GetBehavior() != enums.VERSIONING_BEHAVIOR_PINNED {
		return nil
	}
	return v.GetDeploymentVersion()
}
