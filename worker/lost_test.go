package worker_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/testsuite"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/devserver"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/workertest"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

// temporalOf starts a dev server at an address, with its database in a folder. It returns a function that stops the
// server.
func (s *scene) temporalOf(address, dir string) (stop func()) {
	s.t.Helper()
	cli, err := workertest.TemporalCLI("../bin")
	require.NoError(s.t, err)
	require.NoError(s.t, os.MkdirAll(dir, 0o755))
	server, err := testsuite.StartDevServer(s.ctx, testsuite.DevServerOptions{
		ExistingPath: cli, LogLevel: "error", DBFilename: filepath.Join(dir, "temporal.db"),
		ClientOptions:    &client.Options{HostPort: address, Logger: quiet()},
		SearchAttributes: searchAttributes(),
	})
	require.NoError(s.t, err)
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			_ = server.Stop()
		}
	}
	s.t.Cleanup(stop)
	return stop
}

// Temporal's whole database is lost while one node is Ready, one is being drained and one is being created. The group
// is paused, and its only provider is cordoned. The new group adopts the existing nodes in their states: the Ready
// node keeps its id, the drain of the second node continues, and the third node becomes Ready or is undone. Pause and
// cordon are lost, so another node is created. Instances without an object are lost too. No name is used twice.
func TestLostDatabaseIsRebuiltFromObjects(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1, func(g *fleet.GroupSpec) { g.Budgets.Drain = seconds(600) })
	address := testkit.FreePorts(t, 1)[0]
	stop := s.temporalOf(address, filepath.Join(s.dir, "before"))
	var err error
	s.temporal, err = client.NewLazyClient(client.Options{HostPort: address, Logger: quiet()})
	require.NoError(t, err)
	t.Cleanup(s.temporal.Close)
	s.groups = flow.NewGroups(s.temporal, s.hub, s.queue)
	kill := s.spawnAt(address)
	s.configure()
	s.grow(2)
	before := s.allIn(fleet.Ready, 2)
	kept, drained := before.Instances[0].Name, before.Instances[1].Name
	uid := s.uid(kept)
	app := sim.Pod{Name: "app", Protected: true}
	require.NoError(t, s.world.PutPod(s.ctx, fleet.ObjectName(drained, 1), app))
	require.NoError(t, s.world.PutPod(s.ctx, fleet.ObjectName(kept, 1), sim.Pod{Name: "stays"}))
	s.release(drained)
	s.knobs(0, sim.Knobs{Hang: backend.StageReady})
	s.grow(1)
	s.counts("another node is on its way", func(c sim.Counts) bool { return c.Nodes == 3 })
	require.NoError(t, s.pause("first", "true"))
	_, err = flow.NewEntities(s.temporal, s.hub, s.queue).Cordon(s.ctx, s.providers[0], true)
	require.NoError(t, err)
	s.provider(0, "is cordoned", func(p fleet.ProviderSnapshot) bool { return !p.Cordoned.IsZero() })

	kill()
	stop()
	s.temporalOf(address, filepath.Join(s.dir, "after"))
	s.spawnAt(address)
	s.knobs(0, sim.Knobs{})
	after := s.configure()
	require.True(t, fleet.EpochBefore(before.Epoch, after.Epoch), "%s after %s", after.Epoch, before.Epoch)
	require.False(t, after.Paused)
	require.NoError(t, s.world.RemovePod(s.ctx, fleet.ObjectName(drained, 1), app.Name))
	rest := s.until("what was drained is gone, and what counts is Ready", func(snap fleet.Snapshot) bool {
		for _, i := range snap.Instances {
			if i.Phase != fleet.Ready || i.Name == drained {
				return false
			}
		}
		w, err := s.world.Snapshot()
		return err == nil && w.Counts().Nodes == len(snap.Instances) && len(snap.Instances) == snap.Target
	})
	require.Equal(t, uid, s.uid(kept), "the Ready node was created again")
	s.counts("its pod is there", func(c sim.Counts) bool { return c.Pods == 1 })
	next := s.grow(1)
	names := map[string]bool{drained: true}
	var all []string
	for _, i := range next.Instances {
		require.False(t, names[i.Name], "%s again", i.Name)
		names[i.Name] = true
		all = append(all, i.Name)
	}
	require.Contains(t, all, kept)
	require.Len(t, all, len(rest.Instances)+1)
	s.allIn(fleet.Ready, len(all))
	s.release(all...)
	s.allIn("", 0)
	s.counts("the nodes are released", func(c sim.Counts) bool { return c.Nodes == 0 && c.RemoteSlices == 0 })
}

// uid returns the UID of an instance's Node.
func (s *scene) uid(instance string) string {
	s.t.Helper()
	w, err := s.world.Snapshot()
	require.NoError(s.t, err)
	for _, n := range w.Consumer.Nodes {
		if n.Name == fleet.ObjectName(instance, 1) {
			return string(n.UID)
		}
	}
	require.Fail(s.t, "no node of "+instance)
	return ""
}

// A new leader's rounds take effect, although the rounds of the previous leader had higher numbers.
func TestRoundsOfANewLeaderTakeEffect(t *testing.T) {
	t.Parallel()
	s := newHubScene(t, 1).work()
	s.observe()
	require.NoError(t, s.temporal.SignalWorkflow(s.ctx, s.hub.ID(workflows.NodeGroupID(s.spec.ID)), "",
		workflows.SignalDifferences, fleet.Differences{Round: fleet.RoundID{Term: 7, Number: 100_000}}))
	s.until("the group publishes the term", func(snap fleet.Snapshot) bool { return snap.Term == 7 })
	ctx, cancel := context.WithTimeout(s.ctx, waitLimit)
	defer cancel()
	require.ErrorContains(t, s.observer.RoundNow(ctx), "higher term")
	again, cancel := context.WithTimeout(s.ctx, 2*time.Minute) // the former leader gives other workers a minute to lead
	defer cancel()
	require.NoError(t, s.observer.RoundNow(again))
	name := s.failedOutOfReach()
	require.NoError(t, s.temporal.CancelWorkflow(s.ctx, s.hub.ID(workflows.UndoID(name, 1)), ""))
	s.isStatus(workflows.UndoID(name, 1), enums.WORKFLOW_EXECUTION_STATUS_CANCELED)
	s.knobs(0, sim.Knobs{})
	for range 2 {
		s.observe()
	}
	s.counts("objects without an undo are found", func(c sim.Counts) bool { return c.Slices == 0 && c.RemoteSlices == 0 })
	s.release(name)
	s.empty()
}

// When a group's history is lost, state without an object is lost too. A failed instance is an example.
func TestLostHistoryLosesFailures(t *testing.T) {
	t.Parallel()
	s := newScene(t, 0).work()
	s.grow(1)
	s.allIn(fleet.Failed, 1)
	require.NoError(t, s.temporal.TerminateWorkflow(s.ctx, workflows.NodeGroupID(s.spec.ID), "", "test"))
	require.Empty(t, s.configure().Instances)
}

// The histories of closed workflows are lost, as after the end of their retention. The group can then no longer read
// the outcome of an instance, and does not need it. A node stays, even when the history of its group is lost too. An
// attempt whose scale-out has ended is still rolled back. No name is used twice.
func TestLostHistoriesOfClosedWorkflowsAreNotNeeded(t *testing.T) {
	t.Parallel()
	s := newHubScene(t, 1).work()
	kept := s.grow(1).Instances[0].Name
	s.allIn(fleet.Ready, 1)
	gone := s.grow(1).Instances[1].Name
	s.allIn(fleet.Ready, 2)
	s.release(gone)
	s.allIn(fleet.Ready, 1)
	s.knobs(0, sim.Knobs{Hang: backend.StageVirtualKubelet})
	failed := s.grow(1).Instances[1].Name
	s.counts("another slice is granted", func(c sim.Counts) bool { return c.RemoteSlices == 2 })
	s.knobs(0, sim.Knobs{Unreachable: true})
	require.NoError(t, s.temporal.CancelWorkflow(s.ctx, s.hub.ID(workflows.ScaleOutID(failed)), ""))
	s.isStatus(workflows.UndoID(failed, 1), enums.WORKFLOW_EXECUTION_STATUS_RUNNING)
	for _, id := range []string{workflows.ScaleOutID(kept), workflows.ScaleOutID(gone), workflows.ScaleInID(gone),
		workflows.ScaleOutID(failed)} {
		devserver.Forget(t, s.temporal, s.hub.ID(id))
	}
	histories, err := s.groups.DriverHistories(s.ctx, fleet.ScaleOut, gone)
	require.NoError(t, err)
	require.Empty(t, histories)

	s.knobs(0, sim.Knobs{})
	s.release(failed)
	s.counts("the attempt is rolled back", func(c sim.Counts) bool { return c.Slices == 1 && c.RemoteSlices == 1 })
	for range 2 {
		s.observe()
	}
	require.NoError(t, s.temporal.TerminateWorkflow(s.ctx, s.hub.ID(workflows.NodeGroupID(s.spec.ID)), "", "test"))
	s.configure()
	require.Equal(t, kept, s.allIn(fleet.Ready, 1).Instances[0].Name)
	next := s.grow(1).Instances[1].Name
	require.NotContains(t, []string{kept, gone, failed}, next)
	s.allIn(fleet.Ready, 2)
	s.release(kept, next)
	s.empty()
}
