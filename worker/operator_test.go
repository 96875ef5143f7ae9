package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

// These tests follow the instructions for operators in docs/operations.md.

// pauseInput returns the input for a pause as docs/operations.md states it, with another operation id.
func pauseInput(t testing.TB, id, paused string) json.RawMessage {
	t.Helper()
	text, err := os.ReadFile("../docs/operations.md")
	require.NoError(t, err)
	input := regexp.MustCompile(`--name pause \\\n\s+--input '([^']+)'`).FindSubmatch(text)
	require.NotNil(t, input)
	return json.RawMessage(strings.NewReplacer("by-hand-1", id, "true", paused).Replace(string(input[1])))
}

func (s *scene) pause(id, paused string) error {
	s.t.Helper()
	handle, err := s.temporal.UpdateWorkflow(s.ctx, client.UpdateWorkflowOptions{
		WorkflowID: workflows.NodeGroupID(s.spec.ID), UpdateName: "pause", Args: []any{pauseInput(s.t, id, paused)},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err != nil {
		return err
	}
	return handle.Get(s.ctx, nil)
}

// A paused group refuses scale-out and continues to scale in until an operator resumes it. A repeated operation id
// changes nothing.
func TestPausedGroupOnlyScalesIn(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1).work()
	name := s.grow(1).Instances[0].Name
	s.allIn(fleet.Ready, 1)
	require.NoError(t, s.pause("first", "true"))
	require.True(t, s.snapshot().Paused)
	_, err := s.groups.Grow(s.ctx, s.spec.ID, 1, 0, fleet.Position{})
	require.True(t, fleet.IsRefused(err, fleet.RefusedMax), "%v", err)
	s.release(name)
	s.allIn("", 0)
	require.NoError(t, s.pause("first", "false"))
	require.True(t, s.snapshot().Paused, "the operation is known")
	require.NoError(t, s.pause("second", "false"))
	s.grow(1)
	s.allIn(fleet.Ready, 1)
}

// begun picks the event after the first task of a run.
func begun(e *history.HistoryEvent) bool {
	return e.GetEventType() != enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
}

// A peering that an operator resets counts as failed, and an instance that waits for it goes to another provider.
func TestResetPeeringCountsAsFailed(t *testing.T) {
	t.Parallel()
	s := newHubScene(t, 2).work()
	s.knobs(0, sim.Knobs{Hang: backend.StageTenant})
	s.grow(1)
	s.counts("a tenant is made and stays unanswered", func(c sim.Counts) bool { return c.Tenants == 1 })
	s.reset(s.hub.ID(workflows.PeeringID(s.providers[0])), begun)
	i := s.allIn(fleet.Ready, 1).Instances[0]
	require.Equal(t, s.providers[1], i.Provider)
	s.knobs(0, sim.Knobs{})
	s.provider(0, "has cooled off", func(p fleet.ProviderSnapshot) bool { return p.Phase == fleet.Absent })
	for range 2 { // the first run's pass may have made a Tenant after the removal
		s.observe()
	}
	s.provider(0, "is known to have a peering, unless none is left", func(p fleet.ProviderSnapshot) bool {
		w, err := s.world.Snapshot()
		return p.Phase == fleet.Lingering || err == nil && w.Counts().Peerings == 1
	})
}

// An undo that an operator resets runs once more and does not harm the attempt that is Ready.
func TestResetUndoRunsAgain(t *testing.T) {
	t.Parallel()
	s := newScene(t, 2)
	s.knobs(0, sim.Knobs{Refuse: backend.StageResources, Message: "resources denied"})
	s.work()
	name := s.grow(1).Instances[0].Name
	s.allIn(fleet.Ready, 1)
	undo := workflows.UndoID(name, 1)
	s.isStatus(undo, enums.WORKFLOW_EXECUTION_STATUS_COMPLETED)
	first := s.run(undo)
	s.reset(undo, begun)
	require.Eventually(t, func() bool { return s.run(undo) != first }, waitLimit, waitTick)
	s.isStatus(undo, enums.WORKFLOW_EXECUTION_STATUS_COMPLETED)
	s.counts("the node is there", func(c sim.Counts) bool { return c.Ready == 1 && c.Slices == 1 })
	s.release(name)
	s.empty()
}

// The hub of this server has no worker. The server's group does not answer, so the server does not become ready.
func TestServerWithoutAWorkerIsNotReady(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1).work()
	groups := flow.NewGroups(s.temporal, "elsewhere", s.queue)
	ctx, cancel := context.WithTimeout(s.ctx, 3*time.Second)
	defer cancel()
	_, err := groups.Configure(ctx, s.spec, fleet.GroupNotice{}, fleet.Position{})
	require.Error(t, err)
	_, err = groups.Snapshot(s.ctx, s.spec.ID)
	require.ErrorIs(t, err, fleet.ErrUnavailable)
}

// `status` and `offers` can be read while no worker runs: they show the published states and the current step.
func TestStatusIsReadWithoutAWorker(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1)
	s.knobs(0, sim.Knobs{Hang: backend.StageReady})
	kill := s.spawn()
	s.configure()
	name := s.grow(1).Instances[0].Name
	entities := flow.NewEntities(s.temporal, s.hub, s.queue)
	reads := func() error {
		running, err := s.groups.Running(s.ctx)
		if err == nil && !slices.Contains(running, s.spec.ID) {
			err = fmt.Errorf("only %v run", running)
		}
		snap, unread := s.groups.Snapshot(s.ctx, s.spec.ID)
		if err = errors.Join(err, unread); err != nil || len(snap.Instances) != 1 {
			return fmt.Errorf("%+v: %w", snap.Instances, err)
		}
		i := snap.Instances[0]
		under, err := s.groups.Waits(s.ctx, i)
		if err == nil && (i.Name != name || i.Phase != fleet.Peering || under.Stage != string(backend.StageReady)) {
			err = fmt.Errorf("%+v waits for %s", i, under)
		}
		all, unread := entities.Providers(s.ctx)
		if !slices.ContainsFunc(all, func(p fleet.ProviderSnapshot) bool {
			return p.ID == s.providers[0] && slices.Equal(p.Holds, []string{fleet.ObjectName(name, 1)})
		}) {
			unread = errors.Join(unread, fmt.Errorf("%s holds nothing", s.providers[0]))
		}
		choices, undecided := s.groups.Choices(s.ctx, s.spec.ID)
		if len(choices) != 1 {
			undecided = errors.Join(undecided, fmt.Errorf("it remembers %+v", choices))
		}
		return errors.Join(err, unread, undecided)
	}
	testkit.Until(t, waitLimit, "all is published", reads)
	_, _, err := s.groups.Costs(s.ctx, s.spec.ID)
	require.NoError(t, err)
	kill()
	require.NoError(t, reads())
	bounded, cancel := context.WithTimeout(s.ctx, time.Second)
	defer cancel()
	published, _, err := s.groups.Costs(bounded, s.spec.ID) // only past days need a worker
	require.ErrorIs(t, err, fleet.ErrUnavailable)
	require.Equal(t, s.spec.ID, published.Group)
	s.knobs(0, sim.Knobs{})
	s.spawn()
	s.allIn(fleet.Ready, 1)
}
