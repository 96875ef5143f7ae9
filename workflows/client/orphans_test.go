package client

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/deployment/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// polled is a fake Temporal with a task queue, workers of these builds, and one running workflow.
type polled struct {
	Temporal
	versioning *workflow.WorkflowExecutionVersioningInfo
	builds     []string
	err        error
}

func (p *polled) DescribeWorkflowExecution(context.Context, string,
	string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflow.WorkflowExecutionInfo{
		Status: enums.WORKFLOW_EXECUTION_STATUS_RUNNING, TaskQueue: "q-drivers", VersioningInfo: p.versioning,
	}}, nil
}

func (p *polled) DescribeTaskQueue(context.Context, string,
	enums.TaskQueueType) (*workflowservice.DescribeTaskQueueResponse, error) {
	var all []*taskqueue.PollerInfo
	for _, build := range p.builds {
		all = append(all, &taskqueue.PollerInfo{DeploymentOptions: &deployment.WorkerDeploymentOptions{DeploymentName: "la",
			BuildId: build}})
	}
	return &workflowservice.DescribeTaskQueueResponse{Pollers: all}, p.err
}

func pinnedTo(build string) *workflow.WorkflowExecutionVersioningInfo {
	return &workflow.WorkflowExecutionVersioningInfo{Behavior: enums.VERSIONING_BEHAVIOR_PINNED,
		DeploymentVersion: &deployment.WorkerDeploymentVersion{DeploymentName: "la", BuildId: build}}
}

// A workflow that is pinned to a version without workers is orphaned after two checks, a minute apart. If one of
// these checks, or a check between them, finds a worker of the version, the workflow is not orphaned.
func TestOrphanIsFoundByTwoChecks(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	p := &polled{versioning: pinnedTo("1"), builds: []string{"1", "2"}}
	s := NewSingle(p, "", "", false)
	s.now = func() time.Time { return now }
	look := func(after time.Duration, builds ...string) bool {
		t.Helper()
		now, p.builds = now.Add(after), builds
		got, err := s.Status(t.Context(), "scale-out/a-t0-1")
		require.NoError(t, err)
		require.True(t, got.Running)
		return got.Orphaned
	}
	require.False(t, look(0, "1", "2"), "it has workers")
	require.False(t, look(time.Hour, "2"), "seen once")
	require.False(t, look(30*time.Second, "1", "2"), "it was a moment only")
	require.False(t, look(time.Hour, "2"), "seen once again")
	require.False(t, look(59*time.Second, "2"))
	require.True(t, look(time.Second, "2"))
	require.False(t, look(time.Second), "Temporal was restarted and knows no worker")

	require.False(t, look(time.Hour, "2"))
	p.versioning.Behavior = enums.VERSIONING_BEHAVIOR_AUTO_UPGRADE
	require.False(t, look(time.Hour, "2"), "any version may continue it")
	p.versioning = nil
	require.False(t, look(time.Hour, "2"), "workers are not versioned")
	p.versioning = pinnedTo("2")
	p.versioning.VersioningOverride = &workflow.VersioningOverride{Override: &workflow.VersioningOverride_AutoUpgrade{
		AutoUpgrade: true}}
	require.False(t, look(0, "1") || look(time.Hour, "1"), "an operator has moved it")
}

// Only Temporal shows which versions have workers, so a workflow's status is unknown while Temporal does not answer.
func TestOrphanStatusIsUnknownWithoutTemporal(t *testing.T) {
	p := &polled{versioning: pinnedTo("1"), err: errors.New("no answer")}
	_, err := NewSingle(p, "", "", false).Status(t.Context(), "scale-out/a-t0-1")
	require.ErrorIs(t, err, fleet.ErrOutcomeUnknown)
	require.ErrorContains(t, err, "scale-out/a-t0-1")
}
