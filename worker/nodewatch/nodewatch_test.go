package nodewatch_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/nodewatch"
)

// A person deletes the Node of a live instance. The Node is registered and stamped again, and its group receives the
// fact.
func TestDeletedNodeIsStampedAgain(t *testing.T) {
	s := newScene(t)
	s.run()
	a := s.join("edge-t0-1")
	s.told("edge-t0-1", fleet.Registered)
	before := s.node(a).UID
	require.NoError(t, s.world.DeleteNode(t.Context(), a.ObjectName()))
	s.stamped(a)
	require.NotEqual(t, before, s.node(a).UID)
	require.Eventually(t, func() bool {
		kinds := s.groups.of("edge-t0-1")
		return kinds[len(kinds)-1] == fleet.Registered
	}, waitLimit, waitTick)
	require.NotContains(t, s.groups.of("edge-t0-1"), fleet.Lost)
}

// The kubelet would register the Node only after an hour. nodewatch makes it register the Node immediately.
func TestDeletedNodeIsRegisteredImmediately(t *testing.T) {
	s := newScene(t)
	require.NoError(t, s.world.SetDelays(t.Context(), sim.Delays{Register: time.Hour}))
	s.run()
	a := s.join("edge-t0-1")
	s.told("edge-t0-1", fleet.Registered)
	for range 2 {
		before := s.node(a).UID
		require.NoError(t, s.world.DeleteNode(t.Context(), a.ObjectName()))
		s.stamped(a)
		require.NotEqual(t, before, s.node(a).UID)
	}
}

// While a kubelet does not register its Node, nodewatch repeats the request at intervals, and not continuously.
func TestMissingNodeIsCalledBackAtIntervals(t *testing.T) {
	s := newScene(t)
	var calls atomic.Int32
	found := s.ready("edge-t0-1")
	watcher := counting{s.backend, found.Attempt, &calls}
	var clock atomic.Int64
	tell := s.script(func(o *nodewatch.Options) {
		o.Watcher, o.CallEvery = scripted{watcher, o.Watcher.(scripted).found}, time.Hour
		o.Clock = func() time.Time { return time.Unix(1_700_000_000+clock.Load(), 0) }
	})
	away := found
	away.Node, away.Stamped, away.Ready = false, false, false
	tell(found, away, away, away)
	require.Equal(t, int32(1), calls.Load())
	tell(found, away)
	require.Equal(t, int32(2), calls.Load(), "away once more")
	clock.Add(3599)
	tell(away)
	require.Equal(t, int32(2), calls.Load())
	clock.Add(1)
	tell(away)
	require.Equal(t, int32(3), calls.Load())
}

// A marked virtual node whose Node was never stamped belongs to a Join that is about to stamp the Node. Join first
// checks for other attempts, and Restamp does not. nodewatch therefore stamps such a Node only when Join has not done
// so in time.
func TestFirstStampBelongsToJoin(t *testing.T) {
	s := newScene(t)
	var calls atomic.Int32
	found := s.ready("edge-t0-1")
	var clock atomic.Int64
	tell := s.script(func(o *nodewatch.Options) {
		o.Watcher = scripted{counting{s.backend, found.Attempt, &calls}, o.Watcher.(scripted).found}
		o.Clock = func() time.Time { return time.Unix(1_700_000_000+clock.Load(), 0) }
	})
	marked := found
	marked.Stamped = false
	tell(marked)
	require.Zero(t, calls.Load(), "stamped concurrently with Join")
	clock.Add(60)
	require.Eventually(t, func() bool { return calls.Load() > 0 }, waitLimit, waitTick, "it tries again")
	calls.Store(0)
	tell(found, marked)
	require.NotZero(t, calls.Load(), "it was stamped before: there is no Join")
}

// nodewatch repeats the request to register a missing Node, even without a new report of the backend.
func TestMissingNodeIsCalledBackWithoutANewReport(t *testing.T) {
	s := newScene(t)
	var calls atomic.Int32
	found := s.ready("edge-t0-1")
	found.Node, found.Stamped, found.Ready = false, false, false
	watcher := counting{s.backend, found.Attempt, &calls}
	tell := s.script(func(o *nodewatch.Options) {
		o.Watcher, o.CallEvery = scripted{watcher, o.Watcher.(scripted).found}, 5*waitTick
	})
	tell(found)
	require.Eventually(t, func() bool { return calls.Load() >= 3 }, waitLimit, waitTick)
	found.Marked = false
	tell(found)
	after := calls.Load() + 1 // one more call may be pending
	require.Never(t, func() bool { return calls.Load() > after }, 20*waitTick, waitTick, "called although it is leaving")
}

// The kubelet dies and runs again later. The group receives the facts NotReady and then Registered.
func TestNodeThatRecoversIsReported(t *testing.T) {
	s := newScene(t)
	a := s.join("edge-t0-1") // the node exists before the nodewatch runs
	s.run()
	s.told("edge-t0-1", fleet.Registered)
	require.NoError(t, s.world.KillKubelet(t.Context(), a.ObjectName()))
	s.told("edge-t0-1", fleet.Registered, fleet.NotReady)
	require.NoError(t, s.world.ReviveKubelet(t.Context(), a.ObjectName()))
	s.told("edge-t0-1", fleet.Registered, fleet.NotReady, fleet.Registered)
	require.Equal(t, []bool{true, false, false}, s.groups.confirms("edge-t0-1"), "the driver has reported the first")
}

// A Node was not ready and then missing. When it is registered again, nodewatch reports this.
func TestNodeRegisteredAfterNotReadyIsReported(t *testing.T) {
	s := newScene(t)
	tell := s.script()
	found := s.ready("edge-t0-1")
	tired, away := found, found
	tired.Ready = false
	away.Node, away.Stamped, away.Ready = false, false, false
	tell(found, tired, away, found, away, found)
	s.told("edge-t0-1", fleet.Registered, fleet.NotReady, fleet.Registered, fleet.Registered)
	require.Equal(t, []bool{true, false, false, true}, s.groups.confirms("edge-t0-1"))
}

func TestDeletedSliceOrVirtualNodeIsReportedLost(t *testing.T) {
	for name, remove := range map[string]func(*sim.World, context.Context, string) error{
		"slice":        (*sim.World).DeleteSlice,
		"virtual node": (*sim.World).DeleteVirtualNode,
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.run()
			a := s.join("edge-t0-1")
			s.told("edge-t0-1", fleet.Registered)
			require.NoError(t, remove(s.world, t.Context(), a.ObjectName()))
			s.told("edge-t0-1", fleet.Registered, fleet.Lost)
		})
	}
}

// A drained Node whose virtual node has lost its mark is never stamped.
func TestUnmarkedNodeIsNotStamped(t *testing.T) {
	s := newScene(t)
	var calls atomic.Int32
	a := s.attempt("edge-t0-1")
	s.run(func(o *nodewatch.Options) { o.Watcher = counting{s.backend, a, &calls} })
	s.join("edge-t0-1")
	s.told("edge-t0-1", fleet.Registered)
	require.NoError(t, s.backend.Drain(t.Context(), a, false, nil))
	calls.Store(0)
	require.NoError(t, s.world.DeleteNode(t.Context(), a.ObjectName()))
	require.Eventually(t, func() bool { return s.node(a) != nil }, waitLimit, waitTick)
	s.join("edge-t0-2")
	s.told("edge-t0-2", fleet.Registered)
	require.Empty(t, s.node(a).Spec.ProviderID)
	require.Zero(t, calls.Load(), "the backend was called to stamp it")
	s.told("edge-t0-1", fleet.Registered)
}

// nodewatch reports a change once, even when the backend reports it several times. When the Node was missing in
// between, nodewatch reports it again.
func TestEachChangeIsReportedOnce(t *testing.T) {
	s := newScene(t)
	tell := s.script()
	found := s.ready("edge-t0-1")
	tell(found, found, found)
	s.told("edge-t0-1", fleet.Registered)
	away := found
	away.Node, away.Stamped, away.Ready = false, false, false
	tell(away, found)
	s.told("edge-t0-1", fleet.Registered, fleet.Registered)
}

// Before we remove an object, it loses its mark, so it does not count as lost. An object whose removal began before
// nodewatch started does not count as lost either. An object that another party removes counts as lost.
func TestOnlyObjectsRemovedByOthersAreLost(t *testing.T) {
	s := newScene(t)
	tell := s.script()
	found := s.ready("edge-t0-1")
	unmarked := found
	unmarked.Marked = false
	leaving := unmarked
	leaving.Terminating = true
	slice := fleet.Found{Attempt: found.Attempt, Slice: true, Terminating: true}
	nothing := fleet.Found{Attempt: found.Attempt}
	tell(found, unmarked, leaving, slice, nothing)
	s.told("edge-t0-1", fleet.Registered)
	tell(slice, nothing)
	s.told("edge-t0-1", fleet.Registered)

	terminating := found
	terminating.Terminating = true
	tell(found, terminating, nothing)
	s.told("edge-t0-1", fleet.Registered, fleet.Registered, fleet.Lost)

	orphan := found // a virtual node that was removed while no watch ran
	orphan.Virtual, orphan.Marked = false, false
	tell(orphan)
	s.told("edge-t0-1", fleet.Registered, fleet.Registered, fleet.Lost, fleet.Lost)
}

// Groups and the API server fail for a while. Afterwards nodewatch completes the pending work that is still valid.
func TestFailuresAreRetried(t *testing.T) {
	s := newScene(t)
	s.groups.setRefuse(errors.New("temporal is away"))
	failing := &failing{Backend: s.backend}
	failing.left.Store(5)
	s.run(func(o *nodewatch.Options) { o.Watcher = failing })
	a := s.join("edge-t0-1")
	require.NoError(t, s.world.DeleteNode(t.Context(), a.ObjectName()))
	s.stamped(a)
	require.LessOrEqual(t, failing.left.Load(), int32(0))
	require.NoError(t, s.world.KillKubelet(t.Context(), a.ObjectName()))
	require.Eventually(t, func() bool { return s.groups.refusals() >= 3 }, waitLimit, waitTick)
	require.NoError(t, s.world.ReviveKubelet(t.Context(), a.ObjectName()))
	s.groups.setRefuse(nil)
	require.Eventually(t, func() bool {
		kinds := s.groups.of("edge-t0-1")
		return len(kinds) > 0 && kinds[len(kinds)-1] == fleet.Registered
	}, waitLimit, waitTick)
}

// When the group does not run, nodewatch drops the fact without a retry, and sends the next fact.
func TestFactForAGroupThatDoesNotRunIsDropped(t *testing.T) {
	s := newScene(t)
	s.groups.setRefuse(nodewatch.ErrNoGroup)
	s.run()
	a := s.join("edge-t0-1")
	require.Eventually(t, func() bool { return s.groups.refusals() == 1 }, waitLimit, waitTick)
	require.NoError(t, s.world.KillKubelet(t.Context(), a.ObjectName()))
	require.Eventually(t, func() bool { return s.groups.refusals() == 2 }, waitLimit, waitTick)
	s.groups.setRefuse(nil)
	require.NoError(t, s.world.ReviveKubelet(t.Context(), a.ObjectName()))
	s.told("edge-t0-1", fleet.Registered)
}

// nodewatch starts a Watch again when it ends.
func TestWatchThatEndsIsRestarted(t *testing.T) {
	s := newScene(t)
	s.join("edge-t0-1")
	broken := &broken{Watcher: s.backend}
	s.run(func(o *nodewatch.Options) { o.Watcher = broken })
	s.told("edge-t0-1", fleet.Registered)
	require.GreaterOrEqual(t, broken.began.Load(), int32(3))
}

// Two workers watch the same nodes. They do the same work without harm.
func TestTwoWorkersDoNotInterfere(t *testing.T) {
	s := newScene(t)
	stop := s.run()
	s.run(func(o *nodewatch.Options) {
		w, err := sim.Open(s.world.Path())
		require.NoError(t, err)
		o.Watcher = sim.New(w, sim.Options{Poll: waitTick})
	})
	a := s.join("edge-t0-1")
	s.told("edge-t0-1", fleet.Registered, fleet.Registered)
	stop()
	require.NoError(t, s.world.DeleteNode(t.Context(), a.ObjectName()))
	s.stamped(a)
}

// scripted is a Watcher that reports only the nodes that a test sends.
type scripted struct {
	backend.Watcher
	found <-chan fleet.Found
}

func (s scripted) Watch(ctx context.Context, handle func(fleet.Found)) error {
	for {
		select {
		case f := <-s.found:
			handle(f)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// counting counts the calls that stamp an attempt again.
type counting struct {
	backend.Watcher
	of    fleet.Attempt
	calls *atomic.Int32
}

func (c counting) Restamp(ctx context.Context, a fleet.Attempt) error {
	if a.Instance == c.of.Instance {
		c.calls.Add(1)
	}
	return c.Watcher.Restamp(ctx, a)
}

// failing returns an error for the first few stamps.
type failing struct {
	*sim.Backend
	left atomic.Int32
}

func (f *failing) Restamp(ctx context.Context, a fleet.Attempt) error {
	if f.left.Add(-1) >= 0 {
		return errors.New("the API server is away")
	}
	return f.Backend.Restamp(ctx, a)
}

// broken is a Watcher whose first two Watches end immediately.
type broken struct {
	backend.Watcher
	began atomic.Int32
}

func (b *broken) Watch(ctx context.Context, handle func(fleet.Found)) error {
	if b.began.Add(1) <= 2 {
		return errors.New("no watch today")
	}
	return b.Watcher.Watch(ctx, handle)
}

// silent blocks each fact for a group while mute is true, as an unavailable Temporal does.
type silent struct {
	*groups
	mute atomic.Bool
}

func (s *silent) Fact(ctx context.Context, group string, f fleet.Fact) error {
	if s.mute.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	return s.groups.Fact(ctx, group, f)
}

// While groups cannot receive facts, nodewatch still makes a deleted Node register again and stamps the Node, however
// many facts are pending.
func TestNodesAreRepairedWhileGroupsAreSilent(t *testing.T) {
	s := newScene(t)
	var all []fleet.Attempt
	for _, instance := range []string{"edge-t0-1", "edge-t0-2", "edge-t0-3", "edge-t0-4", "edge-t0-5", "edge-t0-6"} {
		all = append(all, s.join(instance))
	}
	mute := &silent{groups: s.groups}
	s.run(func(o *nodewatch.Options) { o.Groups, o.Parallel, o.Bound = mute, 2, time.Minute })
	last := all[len(all)-1]
	s.told(last.Instance, fleet.Registered)
	mute.mute.Store(true)
	for _, a := range all[:len(all)-1] {
		require.NoError(t, s.world.KillKubelet(t.Context(), a.ObjectName()))
	}
	require.NoError(t, s.world.DeleteNode(t.Context(), last.ObjectName()))
	s.stamped(last)
}
