package worker_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

// small makes a group with nodes so small that hundreds of nodes fit on one provider.
func small(most int) func(*fleet.GroupSpec) {
	return func(g *fleet.GroupSpec) {
		g.Max = most
		g.Shape = corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("16Mi"),
			corev1.ResourcePods: resource.MustParse("1"),
		}
	}
}

// slots makes a worker create at most n nodes concurrently, and remove at most n nodes concurrently.
func slots(n int) func(*worker.Options) { return func(o *worker.Options) { o.Slots = n } }

// readyWithin waits until n instances are Ready, each at its first attempt. Time in our own queues must not count
// against a provider (invariant I12).
func (s *scene) readyWithin(limit time.Duration, n int) {
	s.t.Helper()
	began := time.Now()
	var last seen[map[fleet.Phase]int]
	require.Eventuallyf(s.t, func() bool {
		snap, err := s.groups.Snapshot(s.ctx, s.spec.ID)
		phases := map[fleet.Phase]int{}
		for _, i := range snap.Instances {
			phases[i.Phase]++
		}
		return err == nil && last.is(phases)[fleet.Ready] == n
	}, limit, waitTick, "%d instances Ready; last: %s", n, &last)
	s.t.Logf("%d instances Ready in %s", n, time.Since(began).Round(100*time.Millisecond))
	for _, i := range s.snapshot().Instances {
		require.Equal(s.t, 1, i.Attempt, "%+v", i)
	}
}

// events returns the number of events of a kind in the newest run of a workflow.
func (s *scene) events(id string, kind enums.EventType) (n int) {
	s.t.Helper()
	events := s.temporal.GetWorkflowHistory(s.ctx, s.hub.ID(id), "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		require.NoError(s.t, err)
		if e.GetEventType() == kind {
			n++
		}
	}
	return n
}

// waited returns the longest time for which an activity of the workflow waited for a slot of the worker or of the
// provider.
func (s *scene) waited(id string) (most time.Duration) {
	s.t.Helper()
	scheduled := map[int64]time.Time{}
	events := s.temporal.GetWorkflowHistory(s.ctx, s.hub.ID(id), "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		require.NoError(s.t, err)
		switch at := e.GetEventTime().AsTime(); e.GetEventType() {
		case enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
			scheduled[e.GetEventId()] = at
		case enums.EVENT_TYPE_ACTIVITY_TASK_STARTED: // the event is written when the run of the activity has ended
			most = max(most, at.Sub(scheduled[e.GetActivityTaskStartedEventAttributes().GetScheduledEventId()]))
		}
	}
	require.NotEmpty(s.t, scheduled)
	return most
}

// heldUpBy is the longest time for which faults of other providers may keep the steps of a healthy instance waiting for
// their slots.
const heldUpBy = 5 * time.Second

// One worker creates two hundred instances concurrently, on one provider without a peering. All become Ready at their
// first attempt.
func TestTwoHundredInstancesOnOneProviderBecomeReady(t *testing.T) {
	const n = 200
	s := newScene(t, 1, small(n)).work(slots(50))
	s.grow(n)
	s.readyWithin(3*time.Minute, n)
	s.provider(0, "holds them all",
		func(p fleet.ProviderSnapshot) bool { return len(p.Holds) == n && len(p.Waiting) == 0 })
	group, provider := workflows.NodeGroupID(s.spec.ID), workflows.ProviderID(s.providers[0])
	require.Zero(t, s.events(group, enums.EVENT_TYPE_WORKFLOW_TASK_FAILED), "a task of the group failed")
	require.Zero(t, s.events(provider, enums.EVENT_TYPE_WORKFLOW_TASK_FAILED), "a task of the provider failed")
}

// Two hundred drivers send an acquire to a provider whose entity does not run. The entity starts, accepts each acquire
// and answers it.
func TestTwoHundredAcquiresOfAStoppedProviderAreAnswered(t *testing.T) {
	t.Parallel()
	const n = 200
	s := newScene(t, 1, small(n)).work()
	linger := int64(0)
	offer := fleet.Offer{
		LingerSeconds: &linger,
		Name:          s.providers[0], Provider: s.providers[0], Credentials: fleet.Credentials{KubeconfigFile: s.dir + "/" +
			s.providers[0] + ".kubeconfig"},
		Lendable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"),
			corev1.ResourceMemory: resource.MustParse("16Gi"), corev1.ResourcePods: resource.MustParse("440")},
	}
	messages := flow.NewMessages(s.temporal, s.hub, s.queue)
	var all sync.WaitGroup
	var failed atomic.Int64
	for k := range n {
		all.Go(func() {
			key := fleet.ObjectName(fleet.InstanceName(s.spec.ID, "tot1om", k+1), 1)
			err := messages.Holds(s.ctx, s.providers[0], fleet.HoldRequest{Kind: fleet.HoldAcquire, Key: key,
				Shape: s.spec.Shape, Offer: &offer})
			if err != nil {
				failed.Add(1)
			}
		})
	}
	all.Wait()
	require.Zero(t, failed.Load())
	id := workflows.ProviderID(s.providers[0])
	require.LessOrEqual(t, s.events(id, enums.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED), n/2, "they share signals")
	// These drivers do not exist, so no answer can be delivered. Each undeliverable answer releases its hold.
	s.provider(0, "has no holds", func(p fleet.ProviderSnapshot) bool { return p.Revision >= 2*n && len(p.Holds) == 0 })
	s.empty()
}

// Many more instances than a worker has slots wait for a provider without a peering. The peering still gets the slot
// that it needs.
func TestWaitingInstancesLeaveThePeeringASlot(t *testing.T) {
	t.Parallel()
	const n = 25
	s := newScene(t, 1, small(n)).work(slots(5))
	s.grow(n)
	s.readyWithin(waitLimit, n)
}

// More removals are stuck than a worker has slots. A healthy instance is still created and removed.
func TestStuckRemovalsDelayNoOtherInstance(t *testing.T) {
	t.Parallel()
	const n = 6
	s := newScene(t, 2, small(n+1)).work(slots(n - 1))
	s.grow(n)
	s.readyWithin(waitLimit, n)
	var names []string
	for _, i := range s.snapshot().Instances {
		require.Equal(t, s.providers[0], i.Provider)
		names = append(names, i.Name)
	}
	s.knobs(0, sim.Knobs{Hang: backend.StageSliceGone})
	s.release(names...)
	s.counts("the slices are stuck", func(c sim.Counts) bool { return c.Nodes == 0 && c.RemoteSlices == n })
	s.knobs(0, sim.Knobs{Hang: backend.StageSliceGone, Refuse: backend.StageSliceAuth})
	for range 5 { // the stuck removals pause between two passes, so a slot may be free once or twice by chance
		s.visit(n)
	}
	s.knobs(0, sim.Knobs{})
	s.allIn("", 0)
	s.empty()
}

// visit creates and removes an instance on the second provider while other instances are stuck, and requires that none
// of its steps waits long.
func (s *scene) visit(stuck int) {
	s.t.Helper()
	name := s.grow(1).Instances[stuck].Name
	of := func(snap fleet.Snapshot) (i fleet.InstanceView) {
		for _, row := range snap.Instances {
			if row.Name == name {
				i = row
			}
		}
		return i
	}
	s.until("the healthy one is Ready", func(snap fleet.Snapshot) bool { return of(snap).Phase == fleet.Ready })
	require.Equal(s.t, s.providers[1], of(s.snapshot()).Provider)
	s.release(name)
	left := s.until("the healthy one is gone", func(snap fleet.Snapshot) bool { return of(snap).Name == "" })
	require.Len(s.t, left.Instances, stuck, "the others are still stuck")
	for _, id := range []string{workflows.ScaleOutID(name), workflows.ScaleInID(name)} {
		require.LessOrEqual(s.t, s.waited(id), heldUpBy, "%s was held up", id)
	}
}

// blind is a backend whose lists do not return while shut is true.
type blind struct {
	backend.Backend
	shut *atomic.Bool
}

func (b blind) List(ctx context.Context, scope backend.Scope) ([]fleet.Found, error) {
	for b.shut.Load() {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(waitTick):
		}
	}
	return b.Backend.List(ctx, scope)
}

// A group's inspection of the existing objects does not end, and the group receives differences all the time. The
// group still continues as new, and the inspection continues in the next run.
func TestGroupContinuesAsNewDuringAnInspection(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1).shortRuns()
	id := workflows.NodeGroupID(s.spec.ID)
	var shut atomic.Bool
	s.work(func(o *worker.Options) { o.Backend = blind{o.Backend, &shut} })
	name := s.grow(1).Instances[0].Name
	s.allIn(fleet.Ready, 1)
	messages := flow.NewMessages(s.temporal, s.hub, s.queue)
	shut.Store(true)
	require.NoError(t, messages.Fact(s.ctx, s.spec.ID, fleet.Fact{Instance: name, Attempt: 1, Kind: fleet.Lost}))
	first := s.run(id)
	round := int64(0)
	require.Eventually(t, func() bool {
		round++
		d := fleet.Differences{Round: fleet.RoundID{Number: round}}
		return messages.GroupDiffers(s.ctx, s.spec.ID, d) == nil && s.run(id) != first
	}, waitLimit, waitTick, "it continues as new")
	require.Eventually(t, func() bool {
		d, err := s.temporal.DescribeWorkflowExecution(s.ctx, id, "")
		return err == nil && len(d.GetPendingActivities()) == 1
	}, waitLimit, waitTick, "the inspection continues")
	require.NoError(t, s.world.DeleteVirtualNode(s.ctx, fleet.ObjectName(name, 1)))
	shut.Store(false)
	require.Equal(t, 0, s.until("lost", func(snap fleet.Snapshot) bool { return snap.Target == 0 }).Target)
	s.allIn("", 0)
	s.empty()
}
