package worker_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	sdkworker "go.temporal.io/sdk/worker"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// version runs a worker of a version in this process, and makes that version the current one.
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

// builds are the versions that had tasks of a workflow's run.
func (s *scene) builds(id string) map[string]bool {
	s.t.Helper()
	of := map[string]bool{}
	events := s.temporal.GetWorkflowHistory(s.ctx, id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		require.NoError(s.t, err)
		if done := e.GetWorkflowTaskCompletedEventAttributes(); done != nil {
			of[done.GetDeploymentVersion().GetBuildId()] = true
		}
	}
	return of
}

// Another version becomes current in the middle of a scale-out: that ends with the version that began it, and what
// begins later is the new one's; the group continues as new there.
func TestAnotherVersionBecomesCurrent(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1)
	t.Cleanup(s.replay)
	s.version("v1")
	s.configure()
	s.knobs(0, sim.Knobs{Hang: backend.StageReady})
	first := s.grow(1).Instances[0].Name
	s.counts("the node is on its way", func(c sim.Counts) bool { return c.Nodes == 1 })
	s.version("v2")
	second := s.grow(1).Instances[1].Name
	s.knobs(0, sim.Knobs{})
	s.allIn(fleet.Ready, 2)
	s.isStatus(workflows.ScaleOutID(first), enums.WORKFLOW_EXECUTION_STATUS_COMPLETED)
	require.Equal(t, map[string]bool{"v1": true}, s.builds(workflows.ScaleOutID(first)))
	require.Equal(t, map[string]bool{"v2": true}, s.builds(workflows.ScaleOutID(second)))
	testkit.Until(t, waitLimit, "the group is the new one's", func() error {
		if of := s.builds(workflows.NodeGroupID(s.spec.ID)); of["v1"] {
			return fmt.Errorf("its run had tasks of %v", of)
		}
		return nil
	})
	s.release(first, second)
	s.empty()
}

func TestCheckVersion(t *testing.T) {
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
