package worker_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/devserver"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

// An operator restores Temporal from a backup in which an instance was being created. After the backup the instance
// became Ready, and Cluster Autoscaler released it. The worker keeps running, and no gRPC server remembers the
// instance. The instance does not appear again: the observer has saved the group's last position, so the group begins a
// new epoch and stops the scale-out.
func TestReleasedInstanceOfARestoredBackupStaysReleased(t *testing.T) {
	t.Parallel()
	s := newHubScene(t, 1)
	address := testkit.FreePorts(t, 1)[0]
	live, saved := filepath.Join(s.dir, "live"), filepath.Join(s.dir, "saved")
	stop := s.temporalOf(address, live)
	var err error
	s.temporal, err = client.NewLazyClient(client.Options{HostPort: address, Logger: quiet()})
	require.NoError(t, err)
	t.Cleanup(s.temporal.Close)
	s.groups = flow.NewGroups(s.temporal, s.hub, s.queue)
	s.workUnchecked()
	s.knobs(0, sim.Knobs{Hang: backend.StageSliceAuth})
	name := s.grow(1).Instances[0].Name
	s.counts("its slice is made", func(c sim.Counts) bool { return c.Slices == 1 })
	stop()
	require.NoError(t, os.CopyFS(saved, os.DirFS(live)))
	stop = s.temporalOf(address, live)
	s.knobs(0, sim.Knobs{})
	s.allIn(fleet.Ready, 1)
	s.release(name)
	s.allIn("", 0)
	s.counts("nothing is left", func(c sim.Counts) bool { return c.Slices+c.RemoteSlices+c.Nodes == 0 })
	s.observe()
	seen := s.allIn("", 0)

	stop()
	s.temporalOf(address, saved)
	testkit.Until(t, waitLimit, "the group starts a new epoch", func() error {
		ctx, cancel := context.WithTimeout(s.ctx, 10*time.Second)
		defer cancel()
		if err := s.observer.RoundNow(ctx); err != nil {
			return err
		}
		now, err := s.groups.Snapshot(ctx, s.spec.ID)
		if err == nil && !fleet.EpochBefore(seen.Epoch, now.Epoch) {
			err = fmt.Errorf("epoch %s, and %s was seen", now.Epoch, seen.Epoch)
		}
		return err
	})
	s.isStatus(workflows.ScaleOutID(name), enums.WORKFLOW_EXECUTION_STATUS_FAILED)
	s.allIn("", 0)
	s.counts("no node came back", func(c sim.Counts) bool { return c.Slices+c.RemoteSlices+c.Nodes == 0 })
	next := s.grow(1).Instances[0].Name
	require.NotEqual(t, name, next)
	s.allIn(fleet.Ready, 1)
	s.release(next)
	s.allIn("", 0)
	// Two rounds find the hold of the restored scale-out's attempt and release it. The peering is then removed.
	s.rounds("nothing is left", func() bool {
		w, err := s.world.Snapshot()
		return err == nil && w.Counts() == sim.Counts{}
	})
}

// A group and a provider are terminated, and Temporal's index has lost them. The pause and the cordon stay, because the
// observer has saved them.
func TestPauseAndCordonSurviveTerminatedEntities(t *testing.T) {
	t.Parallel()
	s := newHubScene(t, 1).work()
	_, err := s.groups.Pause(s.ctx, s.spec.ID, true)
	require.NoError(t, err)
	entities := flow.NewEntities(s.temporal, s.hub, s.queue)
	_, err = entities.Cordon(s.ctx, s.providers[0], true)
	require.NoError(t, err)
	s.provider(0, "is cordoned", func(p fleet.ProviderSnapshot) bool { return !p.Cordoned.IsZero() })
	s.observe()
	for _, id := range []string{workflows.NodeGroupID(s.spec.ID), workflows.ProviderID(s.providers[0])} {
		require.NoError(t, s.temporal.TerminateWorkflow(s.ctx, s.hub.ID(id), "", "test"))
		devserver.Forget(t, s.temporal, s.hub.ID(id))
	}
	require.True(t, s.configure().Paused)
	_, err = entities.Ensure(s.ctx, s.providers[0])
	require.NoError(t, err)
	s.provider(0, "is cordoned again", func(p fleet.ProviderSnapshot) bool { return !p.Cordoned.IsZero() })
}
