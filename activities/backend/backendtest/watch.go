package backendtest

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// testWatchTellsAll checks that Watch reports every existing node at its start, and returns the context's error soon
// after the context ends.
func (s *suite) testWatchTellsAll(t *testing.T) {
	a := s.attempt(instFirst, 1, s.first())
	s.joined(t, a)
	ctx, stop := s.stoppable(t)
	seen, done := make(chan fleet.Found, 1), make(chan error, 1)
	go func() {
		done <- s.Backend.Watch(ctx, func(f fleet.Found) {
			if f.Attempt.ObjectName() == a.ObjectName() {
				select {
				case seen <- f:
				default:
				}
			}
		})
	}()
	select {
	case f := <-seen:
		require.Equal(t, *s.found(t, a), f, "Watch tells what List lists")
	case err := <-done:
		require.FailNow(t, "Watch ended", "error: %v", err)
	case <-ctx.Done():
		require.FailNow(t, "Watch told nothing")
	}
	stop()
	select {
	case err := <-done:
		require.ErrorIs(t, err, context.Canceled)
	case <-s.prompt(t).Done():
		require.FailNow(t, "Watch did not return after its context had ended")
	}
}

// testWatchFollows starts a Watch before a node exists. Watch reports the node's creation and changes, and reports
// its end once.
func (s *suite) testWatchFollows(t *testing.T) {
	a := s.attempt(instWatched, 1, s.first())
	s.established(t, a.Provider)
	s.left(t, a)
	w := s.watch(t)
	s.joined(t, a)
	w.until(t, a, "joined", whole)
	require.NoError(t, s.Backend.Drain(s.ctx(t), a, true, nil))
	w.until(t, a, "drained, without its mark", func(f fleet.Found) bool {
		return f.Slice && f.Virtual && !f.Marked && f.Node && f.Stamped
	})
	s.left(t, a)
	w.until(t, a, "gone", gone)
	s.joined(t, a)
	w.until(t, a, "joined again", whole)
	n := 0
	for _, f := range w.reported(a) {
		if gone(f) {
			n++
		}
	}
	require.Equal(t, 1, n, "times told that the last object is gone")
}

// testWatchVirtualNodeDeleted checks that Watch reports the deletion of a virtual node by hand. Liqo also removes the
// virtual node's Node, and the slice stays.
func (s *suite) testWatchVirtualNodeDeleted(t *testing.T) {
	if s.World.DeleteVirtualNode == nil {
		t.Skip("this harness has no World.DeleteVirtualNode")
	}
	a := s.attempt(instWatched, 1, s.first())
	w := s.watch(t)
	s.joined(t, a)
	w.until(t, a, "joined", whole)
	require.NoError(t, s.World.DeleteVirtualNode(s.prompt(t), a))
	w.until(t, a, "without virtual node and Node",
		func(f fleet.Found) bool { return f.Slice && !f.Virtual && !f.Node && !f.Marked })
	s.left(t, a)
	w.until(t, a, "gone", gone)
}

// testWatchSliceDeleted checks that the deletion of a slice by hand removes every object of the attempt, on the
// consumer and on the provider.
func (s *suite) testWatchSliceDeleted(t *testing.T) {
	if s.World.DeleteSlice == nil {
		t.Skip("this harness has no World.DeleteSlice")
	}
	a := s.attempt(instWatched, 1, s.first())
	w := s.watch(t)
	s.joined(t, a)
	w.until(t, a, "joined", whole)
	require.NoError(t, s.World.DeleteSlice(s.prompt(t), a))
	w.until(t, a, "gone", gone)
	s.left(t, a)
	require.Empty(t, s.objectsOf(t, a))
}

// whole reports whether the node is complete: the state in which Join returns.
func whole(f fleet.Found) bool {
	return f.Slice && f.Virtual && f.Marked && f.Node && f.Stamped && f.Ready && !f.Terminating
}

func gone(f fleet.Found) bool {
	return !f.Slice && !f.Virtual && !f.Marked && !f.Node && !f.Stamped && !f.Ready && !f.Terminating
}

// watched collects the reports of a running Watch.
type watched struct {
	bound context.Context
	mu    sync.Mutex
	all   []fleet.Found
	more  chan struct{} // closed when a report has arrived
}

// watch runs a Watch until the end of the subtest, and fails the subtest when two reports overlap.
func (s *suite) watch(t *testing.T) *watched {
	t.Helper()
	w := &watched{bound: s.ctx(t), more: make(chan struct{})}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	var calls atomic.Int32
	go func() {
		defer close(ended)
		_ = s.Backend.Watch(ctx, func(f fleet.Found) {
			if calls.Add(1) != 1 {
				t.Error("Watch makes two calls at once")
			}
			w.add(f)
			calls.Add(-1)
		})
	}()
	t.Cleanup(func() { stop(); <-ended })
	return w
}

func (w *watched) add(f fleet.Found) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, f)
	close(w.more)
	w.more = make(chan struct{})
}

// reported returns all reports of the attempt, in order.
func (w *watched) reported(a fleet.Attempt) []fleet.Found {
	list, _ := w.since(a)
	return list
}

func (w *watched) since(a fleet.Attempt) (list []fleet.Found, more <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.all {
		if f.Attempt.ObjectName() == a.ObjectName() {
			list = append(list, f)
		}
	}
	return list, w.more
}

// until waits until the function wanted returns true for the last report of the attempt.
func (w *watched) until(t *testing.T, a fleet.Attempt, what string, wanted func(fleet.Found) bool) {
	t.Helper()
	for {
		list, more := w.since(a)
		if n := len(list); n > 0 && wanted(list[n-1]) {
			return
		}
		select {
		case <-more:
		case <-w.bound.Done():
			require.FailNow(t, "Watch never told that "+a.ObjectName()+" is "+what, "told: %+v", list)
		}
	}
}
