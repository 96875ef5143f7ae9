package worker_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/observer"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

// A worker of another cluster, for example a worker with the wrong kubeconfig, ends before it takes a task, and changes
// nothing. A command gives the hub to a cluster that has been rebuilt.
func TestHubBelongsToOneCluster(t *testing.T) {
	t.Parallel()
	s := newHubScene(t, 1).work()
	s.grow(1)
	s.allIn(fleet.Ready, 1)
	s.observe()
	s.observe()
	testkit.Until(t, waitLimit, "the group has the observer's first message", func() error {
		if s.snapshot().Term == 0 {
			return errors.New("its snapshot has no term")
		}
		return nil
	})
	before := s.snapshot()
	uid, err := s.world.UID()
	require.NoError(t, err)

	other := newHubScene(t, 1)
	o, err := options(other.temporal, other.world, s.queue, other.dir+"/offers.yaml")
	require.NoError(t, err)
	o.Hub, o.Cluster = s.hub, "another"
	err = worker.Run(s.ctx, o)
	require.ErrorIs(t, err, flow.ErrOtherCluster)
	require.ErrorContains(t, err, "belongs to the cluster with UID "+uid+", and this is another")
	s.observe()
	require.Equal(t, before.Revision, s.snapshot().Revision)

	server := flow.NewGroups(s.temporal, s.hub, s.queue)
	server.OfCluster("another")
	for verb, call := range map[fleet.Verb]func() error{
		fleet.Grow:  func() error { _, err := server.Grow(s.ctx, s.spec.ID, 1, 0, fleet.Position{}); return err },
		fleet.Pause: func() error { _, err := server.Pause(s.ctx, s.spec.ID, true); return err },
		fleet.Release: func() error {
			_, err := server.Release(s.ctx, s.spec.ID, []string{"x"}, fleet.Position{})
			return err
		},
		fleet.Shrink: func() error { // this position means that the group's history was reverted
			_, err := server.Shrink(s.ctx, s.spec.ID, 1, fleet.Position{Epoch: before.Epoch, Revision: before.Revision + 1000})
			return err
		},
	} {
		err := call()
		require.True(t, fleet.IsRefused(err, fleet.RefusedOtherCluster), "%s: %v", verb, err)
		require.ErrorContains(t, err, "belongs to the cluster with UID "+uid+", and the caller is in the cluster with UID "+
			"another")
	}
	require.Equal(t, before.Revision, s.snapshot().Revision)
	server.OfCluster(uid)
	_, err = server.Pause(s.ctx, s.spec.ID, true)
	require.NoError(t, err)

	hub := flow.NewHub(s.temporal, s.hub, s.queue)
	require.ErrorIs(t, hub.Check(s.ctx, "another"), flow.ErrOtherCluster)
	require.NoError(t, hub.Check(s.ctx, uid))
	require.NoError(t, hub.PauseObserver(s.ctx, true))
	require.NoError(t, hub.Adopt(s.ctx, uid), "it has it")
	require.NoError(t, hub.PauseObserver(s.ctx, false))
}

// A running worker ends when an operator gives its hub to another cluster.
func TestWorkerEndsWhenItsHubIsGivenAway(t *testing.T) {
	t.Parallel()
	s := newHubScene(t, 1)
	o, err := options(s.temporal, s.world, s.queue, s.dir+"/offers.yaml")
	require.NoError(t, err)
	o.Hub, o.Cluster, o.Lead = s.hub, "first", s.world.Lead
	o.Observer = &observer.Observer{Every: time.Second}
	ctx, cancel := context.WithTimeout(s.ctx, 2*waitLimit)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx, o) }()
	hub := flow.NewHub(s.temporal, s.hub, s.queue)
	testkit.Until(t, waitLimit, "the hub is claimed", func() error {
		_, err := hub.State(ctx)
		return err
	})
	gone := []money.Spent{{Group: "gone", Since: time.Now().UTC().Truncate(time.Second), Account: "team", Currency: "EUR",
		Month: time.Now().UTC().Format("2006-01"), Amount: money.Of(7)}}
	require.NoError(t, hub.HandOver(ctx, []money.Bill{gone[0].Bill()}))
	costs := func() error {
		now, err := hub.Ended(ctx)
		if err == nil && !reflect.DeepEqual(money.Ended{Bills: 1, Rows: gone}, now) {
			err = fmt.Errorf("%+v", now)
		}
		return err
	}
	testkit.Until(t, waitLimit, "the hub has what an ended group cost", costs)
	require.NoError(t, hub.Adopt(ctx, "second"))
	require.NoError(t, costs(), "the new claim begins with it")
	state, err := hub.State(ctx)
	require.NoError(t, err)
	require.Equal(t, workflows.HubState{Cluster: "second"}, state)
	require.ErrorIs(t, <-ended, flow.ErrOtherCluster)
}

// An operator gives a hub to another cluster in several calls. The observer of a worker of the former cluster claims
// the hub in each round. It cannot claim the hub between two of these calls.
func TestFormerClusterCannotReclaimTheHub(t *testing.T) {
	t.Parallel()
	s := newHubScene(t, 1)
	former := flow.NewHub(s.temporal, s.hub, s.queue)
	_, err := former.Claim(s.ctx, "first")
	require.NoError(t, err)
	between := claimsBetween{s.temporal, former}
	require.NoError(t, flow.NewHub(between, s.hub, s.queue).Adopt(s.ctx, "second"))
	state, err := former.State(s.ctx)
	require.NoError(t, err)
	require.Equal(t, workflows.HubState{Cluster: "second"}, state)
}

// claimsBetween is a Temporal client. After each call that changes the hub, a worker of the former cluster claims the
// hub.
type claimsBetween struct {
	flow.Temporal
	former *flow.Hub
}

func (c claimsBetween) TerminateWorkflow(ctx context.Context, id, run, reason string, details ...any) error {
	err := c.Temporal.TerminateWorkflow(ctx, id, run, reason, details...)
	_, _ = c.former.Claim(ctx, "first")
	return err
}

func (c claimsBetween) ExecuteWorkflow(ctx context.Context, options client.StartWorkflowOptions, workflow any,
	args ...any) (client.WorkflowRun, error) {
	run, err := c.Temporal.ExecuteWorkflow(ctx, options, workflow, args...)
	_, _ = c.former.Claim(ctx, "first")
	return run, err
}

// When a claim is lost with Temporal's database, or a person removes it, the next round makes the claim again.
func TestLostClaimIsMadeAgain(t *testing.T) {
	t.Parallel()
	s := newHubScene(t, 1).work()
	s.observe()
	hub := flow.NewHub(s.temporal, s.hub, s.queue)
	before, err := hub.State(s.ctx)
	require.NoError(t, err)
	require.NoError(t, hub.PauseObserver(s.ctx, true))
	require.NoError(t, s.temporal.TerminateWorkflow(s.ctx, s.hub.ID(workflows.HubID), "", "test"))
	_, err = hub.State(s.ctx)
	require.ErrorIs(t, err, fleet.ErrNotRunning)
	s.observe()
	after, err := hub.State(s.ctx)
	require.NoError(t, err)
	require.Equal(t, before, after, "and the observer is not paused")
}
