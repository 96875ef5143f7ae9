package worker_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/workertest"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

// levers holds the commands of the temporal CLI in docs/operations.md, and whether a test has run each command.
type levers struct {
	cli string

	mu  sync.Mutex
	ran map[string]bool
}

var (
	inBlock  = regexp.MustCompile("(?m)^(?:\\$ )?(temporal (?:[^\\\\\n]|\\\\\n)+)")
	inLine   = regexp.MustCompile("`(temporal [^`]+)`")
	folds    = regexp.MustCompile(`\s*\\\n\s*`)
	comments = regexp.MustCompile(`\s+#.*`)
)

func documentedLevers(t *testing.T) *levers {
	t.Helper()
	text, err := os.ReadFile("../docs/operations.md")
	require.NoError(t, err)
	cli, err := workertest.TemporalCLI("../bin")
	require.NoError(t, err)
	l := &levers{cli: cli, ran: map[string]bool{}}
	for _, find := range []*regexp.Regexp{inBlock, inLine} {
		for _, found := range find.FindAllSubmatch(text, -1) {
			command := comments.ReplaceAllString(folds.ReplaceAllString(string(found[1]), " "), "")
			l.ran[strings.TrimSpace(command)] = false
		}
	}
	return l
}

// pull runs a documented command and returns the output. It replaces the placeholders of the command with names of
// the scene.
func (l *levers) pull(s *scene, command string, instead ...string) string {
	s.t.Helper()
	l.mu.Lock()
	_, known := l.ran[command]
	l.ran[command] = true
	l.mu.Unlock()
	require.True(s.t, known, "docs/operations.md does not have: %s", command)
	cmd := exec.CommandContext(s.ctx, "bash", "-c", strings.NewReplacer(instead...).Replace(command))
	cmd.Env = append(os.Environ(), "TEMPORAL_ADDRESS="+devServer, "TEMPORAL_NAMESPACE=default",
		"PATH="+filepath.Dir(l.cli)+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	require.NoError(s.t, err, "%s: %s", cmd, out)
	return string(out)
}

// The test runs every command of the temporal CLI in docs/operations.md as written there. Each command has the
// documented effect.
func TestDocumentedTemporalCommandsWork(t *testing.T) {
	testkit.Slow(t)
	l := documentedLevers(t)
	t.Run("run", func(t *testing.T) {
		for name, pull := range map[string]func(*testing.T, *levers){
			"peering": cancelPeering, "scale-out": cancelScaleOut, "scale-in": cancelScaleIn, "undo": cancelUndo,
			"unpeering": cancelUnpeering, "pause": pauseGroup, "group": resetAndTerminateGroup, "cordon": cordonProvider,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				pull(t, l)
			})
		}
	})
	for command, ran := range l.ran {
		require.True(t, ran, "no test has run: %s", command)
	}
}

func cancelPeering(t *testing.T, l *levers) {
	s := newScene(t, 2).work()
	l.pull(s, "temporal operator search-attribute create --namespace default --name LiqoGroup --type Keyword "+
		"--name LiqoInstance --type Keyword --name LiqoProvider --type Keyword") // these attributes exist
	s.knobs(0, sim.Knobs{Hang: backend.StageTenant})
	name := s.grow(1).Instances[0].Name
	s.counts("a tenant is made and stays unanswered", func(c sim.Counts) bool { return c.Tenants == 1 })
	require.Contains(t, l.pull(s, "temporal task-queue describe --task-queue liqo-autoscaler-making", "liqo-autoscaler",
		s.hub.TaskQueue(s.queue)), "Pollers:")
	require.Contains(t, l.pull(s, "temporal workflow describe -w scale-out/standard-abc123-1", "standard-abc123-1", name),
		"ScaleOut")
	testkit.Until(t, waitLimit, "it is listed", func() error {
		running := l.pull(s, "temporal workflow list --query \"LiqoProvider='milan' AND ExecutionStatus='Running'\"", "milan",
			s.providers[0])
		both := running + l.pull(s, "temporal workflow list --query \"LiqoInstance='standard-towb8j-1'\"",
			"standard-towb8j-1", name)
		return has(both, workflows.PeeringID(s.providers[0]), workflows.ScaleOutID(name))
	})
	l.pull(s, "temporal workflow cancel -w peering/<cluster>", "<cluster>", s.providers[0])
	require.Equal(t, s.providers[1], s.allIn(fleet.Ready, 1).Instances[0].Provider)
}

// The function `has` returns an error when the text lacks one of the words.
func has(text string, words ...string) error {
	for _, w := range words {
		if !strings.Contains(text, w) {
			return fmt.Errorf("no %s in %s", w, text)
		}
	}
	return nil
}

// gone returns an error while the world contains an object.
func (s *scene) gone() error {
	w, err := s.world.Snapshot()
	if err == nil && w.Counts() != (sim.Counts{}) {
		err = fmt.Errorf("there are %+v; %s", w.Counts(), s)
	}
	return err
}

func cancelScaleOut(t *testing.T, l *levers) {
	s := newScene(t, 1).work()
	s.knobs(0, sim.Knobs{Hang: backend.StageReady})
	name := s.grow(1).Instances[0].Name
	s.counts("the node is on its way", func(c sim.Counts) bool { return c.Nodes == 1 })
	l.pull(s, "temporal workflow cancel -w scale-out/<instance>", "<instance>", name)
	failed := s.allIn(fleet.Failed, 1).Instances[0]
	require.Equal(t, fleet.CodeCancelled, failed.Failure.Code)
	s.counts("the attempt is undone", func(c sim.Counts) bool { return c.Slices == 0 && c.RemoteSlices == 0 })
}

func cancelScaleIn(t *testing.T, l *levers) {
	s := newScene(t, 1, func(g *fleet.GroupSpec) { g.Budgets.Drain = seconds(600) }).work()
	name := s.grow(1).Instances[0].Name
	s.allIn(fleet.Ready, 1)
	require.NoError(t, s.world.PutPod(s.ctx, fleet.ObjectName(name, 1), sim.Pod{Name: "protected", Protected: true}))
	s.release(name)
	s.isStatus(workflows.ScaleInID(name), enums.WORKFLOW_EXECUTION_STATUS_RUNNING)
	l.pull(s, "temporal workflow cancel -w scale-in/<instance>", "<instance>", name)
	s.until("stuck", func(snap fleet.Snapshot) bool { return len(snap.Instances) == 1 && snap.Instances[0].Stuck != "" })
	require.NoError(t, s.world.RemovePod(s.ctx, fleet.ObjectName(name, 1), "protected"))
	l.pull(s, "temporal workflow signal -w nodegroup/<group> --name retry", "<group>", s.spec.ID)
	s.allIn("", 0)
	s.empty()
}

// failedOutOfReach creates an instance with a slice and then makes its provider unreachable, so that the instance
// fails. The undo of the instance runs and waits.
func (s *scene) failedOutOfReach() (name string) {
	s.t.Helper()
	s.knobs(0, sim.Knobs{Hang: backend.StageVirtualKubelet})
	name = s.grow(1).Instances[0].Name
	s.counts("the slice is granted", func(c sim.Counts) bool { return c.RemoteSlices == 1 })
	s.knobs(0, sim.Knobs{Unreachable: true})
	require.NoError(s.t, s.temporal.CancelWorkflow(s.ctx, s.hub.ID(workflows.ScaleOutID(name)), ""))
	s.allIn(fleet.Failed, 1)
	s.isStatus(workflows.UndoID(name, 1), enums.WORKFLOW_EXECUTION_STATUS_RUNNING)
	return name
}

// The observer is paused at first. When it runs again, it finds the objects that remain after a cancelled undo.
func cancelUndo(t *testing.T, l *levers) {
	s := newHubScene(t, 1).work()
	of := []string{"hub", s.hub.ID(workflows.HubID), "undo/", s.hub.ID("undo/")}
	l.pull(s, "temporal workflow signal -w hub --name pause-observer --input true", of...)
	hub := flow.NewHub(s.temporal, s.hub, s.queue)
	isPaused := func(want bool) {
		t.Helper()
		testkit.Until(t, waitLimit, "the hub publishes it", func() error {
			state, err := hub.State(s.ctx)
			if err == nil && state.ObserverPaused != want {
				err = fmt.Errorf("paused: %v", state.ObserverPaused)
			}
			return err
		})
	}
	isPaused(true)
	name := s.failedOutOfReach()
	undo := workflows.UndoID(name, 1)
	cancelled := s.run(s.hub.ID(undo))
	l.pull(s, "temporal workflow cancel -w undo/<instance>-<attempt>",
		append(of, "<instance>-<attempt>", name+"-1")...)
	s.isStatus(undo, enums.WORKFLOW_EXECUTION_STATUS_CANCELED)
	s.knobs(0, sim.Knobs{})
	s.release(name)
	for range 3 {
		s.observe()
	}
	require.Error(t, s.gone(), "a paused observer leaves everything as it is")
	l.pull(s, "temporal workflow signal -w hub --name pause-observer --input false", of...)
	isPaused(false)
	testkit.Until(t, 2*waitLimit, "what is left is undone", func() error { // two rounds must find the objects
		s.observe()
		return s.gone()
	})
	require.NotEqual(t, cancelled, s.run(s.hub.ID(undo)))
}

// An operator cancels a removal. The removal stops, and the entity tries it again a minute later.
func cancelUnpeering(t *testing.T, l *levers) {
	s := newScene(t, 1).work()
	s.knobs(0, sim.Knobs{Hang: backend.StageTenantGone})
	name := s.grow(1).Instances[0].Name
	s.allIn(fleet.Ready, 1)
	s.release(name)
	unpeering := workflows.UnpeeringID(s.providers[0])
	s.isStatus(unpeering, enums.WORKFLOW_EXECUTION_STATUS_RUNNING)
	run := s.run(unpeering)
	l.pull(s, "temporal workflow cancel -w unpeering/<cluster>", "<cluster>", s.providers[0])
	testkit.Until(t, waitLimit, "it stops", func() error {
		d, err := s.temporal.DescribeWorkflowExecution(s.ctx, unpeering, run)
		if is := d.GetWorkflowExecutionInfo().GetStatus(); err == nil && is != enums.WORKFLOW_EXECUTION_STATUS_CANCELED {
			err = errors.New(is.String())
		}
		return err
	})
	s.knobs(0, sim.Knobs{})
	testkit.Until(t, 2*waitLimit, "it is tried again", s.gone)
	require.NotEqual(t, run, s.run(unpeering))
}

func pauseGroup(t *testing.T, l *levers) {
	s := newScene(t, 1).work()
	l.pull(s, `temporal workflow update execute -w nodegroup/<group> --name pause `+
		`--input '{"operation": {"id": "by-hand-1", "giveUpAt": "2030-01-01T00:00:00Z"}, "paused": true}'`,
		"<group>", s.spec.ID)
	require.True(t, s.snapshot().Paused)
}

func cordonProvider(t *testing.T, l *levers) {
	s := newScene(t, 1).work()
	s.grow(1)
	s.allIn(fleet.Ready, 1)
	l.pull(s, "temporal workflow signal -w provider/<id> --name cordon --input true", "<id>", s.providers[0])
	s.provider(0, "cordoned", func(p fleet.ProviderSnapshot) bool { return !p.Cordoned.IsZero() })
	s.allIn(fleet.Ready, 1)
}

// A group that is reset begins a new epoch immediately. A group that is terminated begins a new epoch with the next
// Refresh. Each group keeps its node.
func resetAndTerminateGroup(t *testing.T, l *levers) {
	s := newScene(t, 1).work()
	s.grow(1)
	is := s.allIn(fleet.Ready, 1)
	name, epoch := is.Instances[0].Name, is.Epoch
	l.pull(s, `temporal workflow reset -w nodegroup/<group> -t LastWorkflowTask --reason "..."`, "<group>", s.spec.ID)
	s.until("it has started a new epoch", func(snap fleet.Snapshot) bool { return fleet.EpochBefore(epoch, snap.Epoch) })
	require.Equal(t, name, s.allIn(fleet.Ready, 1).Instances[0].Name)
	l.pull(s, `temporal workflow terminate -w nodegroup/<group> --reason "..."`, "<group>", s.spec.ID)
	_, err := s.groups.Snapshot(s.ctx, s.spec.ID)
	require.ErrorIs(t, err, fleet.ErrNotRunning)
	require.Equal(t, name, s.configure().Instances[0].Name)
	require.Equal(t, 1, s.snapshot().Target)
}
