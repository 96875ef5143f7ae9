package worker_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

func (s *scene) status(id string) enums.WorkflowExecutionStatus {
	d, err := s.temporal.DescribeWorkflowExecution(s.ctx, s.hub.ID(id), "")
	if err != nil {
		return enums.WORKFLOW_EXECUTION_STATUS_UNSPECIFIED
	}
	return d.WorkflowExecutionInfo.Status
}

func (s *scene) isStatus(id string, want enums.WorkflowExecutionStatus) {
	s.t.Helper()
	var last seen[enums.WorkflowExecutionStatus]
	require.Eventuallyf(s.t, func() bool { return last.is(s.status(id)) == want }, waitLimit, waitTick, "%s: %s", id,
		&last)
}

func (s *scene) provider(n int, what string, want func(fleet.ProviderSnapshot) bool) {
	s.t.Helper()
	var last seen[fleet.ProviderSnapshot]
	entities := flow.NewEntities(s.temporal, s.hub, s.queue)
	require.Eventuallyf(s.t, func() bool {
		state, err := entities.Status(s.ctx, s.providers[n])
		return err == nil && want(last.is(state))
	}, waitLimit, waitTick, "%s: %s", what, &last)
}

// An operator cancels a group. The group closes and changes nothing, and its running scale-outs continue.
func TestCancelledGroupDoesNotStopItsDrivers(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1).work()
	s.knobs(0, sim.Knobs{Hang: backend.StageReady})
	name := s.grow(1).Instances[0].Name
	s.counts("the node is on its way", func(c sim.Counts) bool { return c.Nodes == 1 })
	require.NoError(t, s.temporal.CancelWorkflow(s.ctx, workflows.NodeGroupID(s.spec.ID), ""))
	s.isStatus(workflows.NodeGroupID(s.spec.ID), enums.WORKFLOW_EXECUTION_STATUS_CANCELED)
	s.configure()
	s.knobs(0, sim.Knobs{})
	ready := s.allIn(fleet.Ready, 1).Instances[0]
	require.Equal(t, name, ready.Name)
	require.Equal(t, 1, ready.Attempt)
	require.Equal(t, 1, s.snapshot().Target)
	s.release(name)
	s.empty()
}

// An operator cancels a provider's entity while its peering is being established. The peering continues, and the
// waiting instance repeats its request for a hold.
func TestPeeringContinuesWithoutItsProviderWorkflow(t *testing.T) {
	asking(t)
	s := newScene(t, 1).work()
	s.knobs(0, sim.Knobs{Hang: backend.StageTenant})
	s.grow(1)
	s.counts("a tenant is made and stays unanswered", func(c sim.Counts) bool { return c.Tenants == 1 })
	require.NoError(t, s.temporal.CancelWorkflow(s.ctx, workflows.ProviderID(s.providers[0]), ""))
	s.knobs(0, sim.Knobs{})
	i := s.allIn(fleet.Ready, 1).Instances[0]
	require.Equal(t, 1, i.Attempt)
	require.NotEqual(t, enums.WORKFLOW_EXECUTION_STATUS_CANCELED, s.status(workflows.PeeringID(s.providers[0])))
}

// A group is terminated and started again within the same second. The two runs never give the same name to two
// instances (invariant I2), because each run has its own epoch. An epoch is named after the second in which it
// begins. If another run has used this second, the epoch gets a later one.
func TestRunsWithinOneSecondHaveDifferentEpochs(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1).work()
	seen := map[string]bool{}
	for range 4 {
		epoch := s.configure().Epoch
		require.False(t, seen[epoch], "epoch %s again", epoch)
		seen[epoch] = true
		require.NoError(t, s.temporal.TerminateWorkflow(s.ctx, workflows.NodeGroupID(s.spec.ID), "", "test"))
	}
	s.configure()
}

// A provider loses its history, and its policy is to keep the peering forever. A round of the observer starts the
// provider's entity again. The entity reads the offers, and keeps the peering.
func TestRecoveredProviderKeepsThePeering(t *testing.T) {
	t.Parallel()
	s := newHubScene(t, 1)
	offers := filepath.Join(s.dir, "offers.yaml")
	text, err := os.ReadFile(offers)
	require.NoError(t, err)
	text = bytes.ReplaceAll(text, []byte("lingerSeconds: 0"), []byte("lingerSeconds: 7, unpeer: never"))
	require.NoError(t, os.WriteFile(offers, text, 0o600))
	s.work()
	s.grow(1)
	s.release(s.allIn(fleet.Ready, 1).Instances[0].Name)
	s.allIn("", 0)
	s.provider(0, "lingers", func(p fleet.ProviderSnapshot) bool { return p.Phase == fleet.Lingering })
	entities := flow.NewEntities(s.temporal, s.hub, s.queue)
	_, err = entities.Cordon(s.ctx, s.providers[0], true)
	require.NoError(t, err)
	require.NoError(t, s.temporal.TerminateWorkflow(s.ctx, s.hub.ID(workflows.ProviderID(s.providers[0])), "", "test"))
	require.Eventually(t, func() bool { // the workflow appears in Temporal's list a moment later
		before, err := entities.Before(s.ctx, s.providers[0])
		return err == nil && !before.Cordoned.IsZero()
	}, waitLimit, waitTick)
	s.observe()
	s.provider(0, "is still cordoned", func(p fleet.ProviderSnapshot) bool { return !p.Cordoned.IsZero() })
	s.provider(0, "keeps its policy", func(p fleet.ProviderSnapshot) bool {
		return p.Phase == fleet.Lingering && p.Offer != nil && p.Offer.Unpeer == fleet.UnpeerNever &&
			p.Offer.Linger() == 7*time.Second
	})
}

// A group loses its history while a scale-out waits for its slice. When the group then releases the instance, the
// scale-out must not continue to create it.
func TestRecoveredGroupStopsScaleOutOfReleasedInstance(t *testing.T) {
	t.Parallel()
	s := newHubScene(t, 1).work()
	s.knobs(0, sim.Knobs{Hang: backend.StageSliceAuth})
	name := s.grow(1).Instances[0].Name
	s.counts("a slice is made", func(c sim.Counts) bool { return c.Slices == 1 })
	require.NoError(t, s.temporal.TerminateWorkflow(s.ctx, s.hub.ID(workflows.NodeGroupID(s.spec.ID)), "", "test"))
	s.configure()
	// The slice does not contain the booking, so two rounds in a row must find that the group does not know the
	// instance.
	testkit.Until(t, waitLimit, "the scale-out is stopped", func() error {
		s.observe()
		if is := s.status(workflows.ScaleOutID(name)); is != enums.WORKFLOW_EXECUTION_STATUS_FAILED {
			return fmt.Errorf("scale-out/%s: %s", name, is)
		}
		return nil
	})
	s.knobs(0, sim.Knobs{})
	s.allIn("", 0)
	s.counts("the slice is returned", func(c sim.Counts) bool { return c.Slices == 0 && c.RemoteSlices == 0 })
}

// A group loses its history while a drained node is being removed. The node does not become Ready again.
func TestRecoveredGroupKeepsDrainingANode(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1, func(g *fleet.GroupSpec) { g.Budgets.Drain = seconds(20) }).work()
	name := s.grow(1).Instances[0].Name
	s.allIn(fleet.Ready, 1)
	object := fleet.ObjectName(name, 1)
	require.NoError(t, s.world.PutPod(s.ctx, object, sim.Pod{Name: "protected", Protected: true}))
	s.release(name)
	require.Eventually(t, func() bool {
		w, err := s.world.Snapshot()
		return err == nil && w.Consumer.Virtuals[object] != nil &&
			w.Consumer.Virtuals[object].Annotations[backend.AnnotationStamp] == ""
	}, waitLimit, waitTick, "the mark is off")
	require.NoError(t, s.temporal.TerminateWorkflow(s.ctx, workflows.NodeGroupID(s.spec.ID), "", "test"))
	require.Equal(t, 0, s.configure().Target)
	require.Equal(t, fleet.StateDeleting, s.snapshot().Instances[0].State)
	s.allIn("", 0)
	s.empty()
}

// groupLostWhilePeering returns a scene with one instance that waits for a hanging peering. The group has lost its
// history in the meantime.
func groupLostWhilePeering(t *testing.T) (s *scene, name string) {
	s = newScene(t, 1).work()
	s.knobs(0, sim.Knobs{Hang: backend.StageTenant})
	name = s.grow(1).Instances[0].Name
	s.allIn(fleet.Peering, 1)
	s.provider(0, "held", func(p fleet.ProviderSnapshot) bool { return len(p.Holds) == 1 })
	require.NoError(t, s.temporal.TerminateWorkflow(s.ctx, s.hub.ID(workflows.NodeGroupID(s.spec.ID)), "", "test"))
	return s, name
}

// A group loses its history while a scale-out without objects waits for its peering. When the scale-out reports, the
// group adopts the instance in the reported state. The hold is released when the instance is released.
func TestForgottenScaleOutIsAdopted(t *testing.T) {
	t.Parallel()
	s, name := groupLostWhilePeering(t)
	require.Empty(t, s.configure().Instances)
	s.knobs(0, sim.Knobs{})
	i := s.allIn(fleet.Ready, 1).Instances[0]
	require.Equal(t, name, i.Name)
	require.Equal(t, 1, i.Attempt)
	require.Equal(t, 0, s.release(name).Target)
	s.provider(0, "not held", func(p fleet.ProviderSnapshot) bool { return len(p.Holds) == 0 })
	s.empty()
}

// A scale-out was terminated, and its group lost its history. The provider's grant for this scale-out cannot be
// delivered, and the provider immediately releases the hold.
func TestGrantForATerminatedScaleOutIsReleased(t *testing.T) {
	t.Parallel()
	s, name := groupLostWhilePeering(t)
	require.NoError(t, s.temporal.TerminateWorkflow(s.ctx, s.hub.ID(workflows.ScaleOutID(name)), "", "test"))
	require.Empty(t, s.configure().Instances)
	s.knobs(0, sim.Knobs{})
	s.provider(0, "not held", func(p fleet.ProviderSnapshot) bool { return len(p.Holds) == 0 })
	s.empty()
}

// A group loses its history, and only the hold of one of its instances is left. Two rounds of the observer find the
// hold, and the provider releases it.
func TestHoldWithoutABookingIsReleased(t *testing.T) {
	t.Parallel()
	s := newHubScene(t, 1).work()
	name := s.grow(1).Instances[0].Name
	s.allIn(fleet.Ready, 1)
	s.isStatus(workflows.ScaleOutID(name), enums.WORKFLOW_EXECUTION_STATUS_COMPLETED)
	require.NoError(t, s.temporal.TerminateWorkflow(s.ctx, s.hub.ID(workflows.NodeGroupID(s.spec.ID)), "", "test"))
	require.NoError(t, s.world.DeleteSlice(s.ctx, fleet.ObjectName(name, 1)))
	require.Empty(t, s.configure().Instances)
	s.provider(0, "still held",
		func(p fleet.ProviderSnapshot) bool { return p.Phase == fleet.Established && len(p.Holds) == 1 })
	s.observe()
	s.observe()
	s.empty()
	s.provider(0, "not held", func(p fleet.ProviderSnapshot) bool { return len(p.Holds) == 0 })
}

// An operator terminates the scale-out of an instance, and CA then releases the instance. The group does not start the
// scale-out again, and carries out the release.
func TestTerminatedScaleOutOfAReleasedInstanceIsNotRestarted(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1).work()
	s.knobs(0, sim.Knobs{Hang: backend.StageTenant})
	name := s.grow(1).Instances[0].Name
	s.allIn(fleet.Peering, 1)
	require.NoError(t, s.temporal.TerminateWorkflow(s.ctx, workflows.ScaleOutID(name), "", "test"))
	require.Equal(t, 0, s.release(name).Target)
	s.allIn("", 0)
	s.knobs(0, sim.Knobs{})
	s.empty()
}

// punctual is a backend whose Drain ends at the same time as its cancellation.
type punctual struct{ backend.Backend }

func (punctual) Drain(ctx context.Context, _ fleet.Attempt, _ bool, _ backend.Progress) error {
	<-ctx.Done()
	return nil
}

// An operator cancels a scale-in, but its step still completes. The instance is stuck and does not continue.
func TestCancelledScaleInIsStuckAfterACompletedStep(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1, func(g *fleet.GroupSpec) { g.Budgets.Drain = seconds(60) })
	o, err := options(s.temporal, s.world, s.queue, filepath.Join(s.dir, "offers.yaml"))
	require.NoError(t, err)
	o.Backend = punctual{o.Backend}
	s.start(o)
	s.configure()
	name := s.grow(1).Instances[0].Name
	s.allIn(fleet.Ready, 1)
	s.release(name)
	s.isStatus(workflows.ScaleInID(name), enums.WORKFLOW_EXECUTION_STATUS_RUNNING)
	require.NoError(t, s.temporal.CancelWorkflow(s.ctx, workflows.ScaleInID(name), ""))
	s.until("stuck", func(snap fleet.Snapshot) bool { return len(snap.Instances) == 1 && snap.Instances[0].Stuck != "" })
	s.release(name)
	s.empty()
}

// deaf is a backend whose Drain ignores its cancellation. When Drain starts, it closes the channel `begun`. When the
// test closes the channel `let`, Drain ends without having drained the node.
type deaf struct {
	backend.Backend
	begun, let chan struct{}
}

func (d deaf) Drain(ctx context.Context, _ fleet.Attempt, _ bool, _ backend.Progress) error {
	select {
	case d.begun <- struct{}{}:
	default:
	}
	select {
	case <-d.let:
	case <-ctx.Done():
	}
	return &backend.StageError{Stage: backend.StageDrain, Message: "a pod is left", Err: context.DeadlineExceeded}
}

// An operator cancels a scale-in. Before the drain receives the cancellation, one of its passes ends while pods are
// left. The drain has not used up its budget, so these pods stay.
func TestCancelledDrainEvictsNoPodByForce(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1, func(g *fleet.GroupSpec) { g.Budgets.Drain = seconds(600) })
	d := deaf{begun: make(chan struct{}), let: make(chan struct{})}
	s.work(func(o *worker.Options) { d.Backend = o.Backend; o.Backend = d })
	name := s.grow(1).Instances[0].Name
	s.allIn(fleet.Ready, 1)
	require.NoError(t, s.world.PutPod(s.ctx, fleet.ObjectName(name, 1), sim.Pod{Name: "app", Protected: true}))
	s.release(name)
	<-d.begun
	require.NoError(t, s.temporal.CancelWorkflow(s.ctx, workflows.ScaleInID(name), ""))
	require.Eventually(t, func() bool {
		return s.events(workflows.ScaleInID(name), enums.EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED) == 1
	}, waitLimit, waitTick)
	close(d.let)
	stuck := s.until("stuck", func(snap fleet.Snapshot) bool {
		return len(snap.Instances) == 1 && snap.Instances[0].Stuck != ""
	})
	require.Equal(t, fleet.Draining, stuck.Instances[0].Phase)
	s.counts("the node is there with its pod", func(c sim.Counts) bool { return c.Nodes == 1 && c.Pods == 1 })
}

// observe makes the observer run one round and waits until the round has ended.
func (s *scene) observe() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, waitLimit)
	defer cancel()
	require.NoError(s.t, s.observer.RoundNow(ctx))
}
