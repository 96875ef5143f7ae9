package worker_test

import (
	"cmp"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	sdkworker "go.temporal.io/sdk/worker"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// version runs a worker of a version in this process and makes that version the current one.
func (s *scene) version(build string) {
	s.t.Helper()
	o, err := options(s.temporal, s.world, s.queue, filepath.Join(s.dir, "offers.yaml"))
	require.NoError(s.t, err)
	o.Version = sdkworker.WorkerDeploymentVersion{DeploymentName: s.queue, BuildID: build}
	s.start(o)
	d := s.temporal.WorkerDeploymentClient().GetHandle(s.queue)
	testkit.Until(s.t, waitLimit, "version "+build+" is current", func() error {
		_, err := d.SetCurrentVersion(s.ctx, client.WorkerDeploymentSetCurrentVersionOptions{BuildID: build})
		return err
	})
}

// builds returns the builds of a run's tasks, in order. An empty run id means the newest run.
func (s *scene) builds(id, run string) (of []string) {
	s.t.Helper()
	events := s.temporal.GetWorkflowHistory(s.ctx, id, run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		require.NoError(s.t, err)
		if done := e.GetWorkflowTaskCompletedEventAttributes(); done != nil {
			of = append(of, cmp.Or(done.GetDeploymentVersion().GetBuildId(), done.GetWorkerVersion().GetBuildId()))
		}
	}
	return of
}

// takenOver requires that a run of another build ends with the first task that the given build processes.
func (s *scene) takenOver(build, id, run string) {
	s.t.Helper()
	testkit.Until(s.t, waitLimit, id+" continues as new", func() error {
		d, err := s.temporal.DescribeWorkflowExecution(s.ctx, id, run)
		is, want := d.GetWorkflowExecutionInfo().GetStatus(), enums.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW
		if err == nil && is != want {
			err = errors.New(is.String())
		}
		return err
	})
	tasks := s.builds(id, run)
	require.Equal(s.t, len(tasks)-1, slices.Index(tasks, build), "%s had tasks of %v", id, tasks)
}

// Another version becomes current in the middle of a scale-out. The scale-out ends with the version that began it, and
// later workflows use the new version. The group and the provider continue as new with the new version.
func TestScaleOutEndsWithItsOwnVersion(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1)
	t.Cleanup(s.replay)
	s.version("v1")
	s.configure()
	s.knobs(0, sim.Knobs{Hang: backend.StageReady})
	first := s.grow(1).Instances[0].Name
	s.counts("the node is on its way", func(c sim.Counts) bool { return c.Nodes == 1 })
	group, provider := workflows.NodeGroupID(s.spec.ID), workflows.ProviderID(s.providers[0])
	groupRun, providerRun := s.run(group), s.run(provider)
	s.version("v2")
	second := s.grow(1).Instances[1].Name
	s.knobs(0, sim.Knobs{})
	s.allIn(fleet.Ready, 2)
	s.isStatus(workflows.ScaleOutID(first), enums.WORKFLOW_EXECUTION_STATUS_COMPLETED)
	require.Equal(t, []string{"v1"}, slices.Compact(s.builds(workflows.ScaleOutID(first), "")))
	require.Equal(t, []string{"v2"}, slices.Compact(s.builds(workflows.ScaleOutID(second), "")))
	s.takenOver("v2", group, groupRun)
	s.takenOver("v2", provider, providerRun)
	s.release(first, second)
	s.empty()
}

// Two builds of a worker without versions run one after the other. A run of the first build ends with the first task
// of the second build.
func TestRunEndsWithTheFirstTaskOfAnotherBuild(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1)
	kill := s.spawn()
	s.configure()
	s.grow(1)
	s.allIn(fleet.Ready, 1)
	group, provider := workflows.NodeGroupID(s.spec.ID), workflows.ProviderID(s.providers[0])
	groupRun, providerRun := s.run(group), s.run(provider)
	kill()
	s.spawnAt(devServer, envBuild+"=another")
	s.grow(1)
	s.allIn(fleet.Ready, 2)
	s.takenOver("another", group, groupRun)
	s.takenOver("another", provider, providerRun)
	s.replay()
}

func TestInvalidVersionsAreRefused(t *testing.T) {
	for _, c := range []struct{ deployment, build, says string }{
		{"", "", ""}, {"la", "v1.2.3", ""}, {"la-edge", "0.3.0-4-gabc", ""}, {"", "v1", "give --deployment-name"},
		{"la.x", "v1", "use no dot"}, {"la:x", "v1", "no colon"}, {"__la", "v1", "underscores"},
		{"la", "", "--build-id"}, {"la", "__unversioned__", "--build-id"}, {"la", strings.Repeat("v", 201), "200 bytes"},
	} {
		err := worker.CheckVersion(sdkworker.WorkerDeploymentVersion{DeploymentName: c.deployment, BuildID: c.build})
		if c.says == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, c.says)
		}
	}
}
