package backendtest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

// verb calls one method of the given backend, for one pass.
type verb func(ctx context.Context, on backend.Backend) error

// inPasses calls the verb in passes of the duration Harness.Pass, alternately on both backends, until the verb
// succeeds or the function enough returns true. Activities call verbs in the same way. So the progress of a verb must
// survive the end of a pass and of a process.
func (s *suite) inPasses(t *testing.T, what string, do verb, enough func() bool) {
	t.Helper()
	all := backend.WithStartTime(s.ctx(t), time.Now())
	backends := [2]backend.Backend{s.Backend, s.Other}
	for n := 0; ; n++ {
		ctx, end := context.WithTimeout(all, s.Pass)
		err := do(ctx, backends[n%2])
		end()
		if err == nil || enough != nil && enough() {
			t.Logf("%s: %d passes", what, n+1)
			return
		}
		require.NoError(t, all.Err(), "%s never comes to its end in %d passes: %v", what, n+1, err)
		var stage *backend.StageError
		require.ErrorAs(t, err, &stage, "%s, pass %d", what, n+1)
		require.ErrorIs(t, err, context.DeadlineExceeded, "%s, pass %d", what, n+1)
	}
}

// testPasses checks that every verb except Join succeeds in passes, even when a disruption budget keeps the pods
// until they are deleted with force.
func (s *suite) testPasses(t *testing.T) {
	p := s.second()
	s.unpeered(t, p)
	a := s.attempt(instPasses, 1, p)
	establish := func(ctx context.Context, on backend.Backend) error { return on.Establish(ctx, p, nil) }
	drain := func(force bool) verb {
		return func(ctx context.Context, on backend.Backend) error { return on.Drain(ctx, a, force, nil) }
	}
	takeBack := func(ctx context.Context, on backend.Backend) error { return on.Return(ctx, a, nil) }
	remove := func(ctx context.Context, on backend.Backend) error { return on.RemovePeering(ctx, p, nil) }

	s.inPasses(t, "Establish", establish, nil)
	s.joined(t, a)
	if s.World.PutPod != nil && s.World.Pods != nil {
		s.putPods(t, a, Pod{Name: "pass-plain"})
		s.inPasses(t, "Drain", drain(false), nil)
		require.Empty(t, s.pods(t, a))

		s.putPods(t, a, Pod{Name: "pass-guarded", Protected: true})
		passes := 0
		s.inPasses(t, "Drain of a pod that does not leave", drain(false), func() bool { passes++; return passes == 3 })
		require.Contains(t, s.pods(t, a), "pass-guarded", "no number of passes is force")
		s.inPasses(t, "Drain with force", drain(true), nil)
		require.Empty(t, s.pods(t, a))

		s.putPods(t, a, Pod{Name: "pass-last", Protected: true})
	}
	s.inPasses(t, "Return", takeBack, nil)
	require.Empty(t, s.objectsOf(t, a))
	require.Nil(t, s.node(t, a))
	s.inPasses(t, "RemovePeering", remove, nil)
	require.Empty(t, s.objects(t, p))
}

// testPassesWhileCut calls Return in passes while the provider is cut off, and the Node has pods that only the
// provider could end. Return removes the Node nevertheless. After the provider is reachable again, Return removes the
// remaining objects.
func (s *suite) testPassesWhileCut(t *testing.T) {
	p := s.second()
	a := s.attempt(instPasses, 2, p)
	s.joined(t, a)
	if s.World.PutPod != nil {
		require.NoError(t, s.World.PutPod(s.ctx(t), a.ObjectName(), Pod{Name: "pass-cut"}))
	}
	undo := s.with(t, p, "Cut", s.World.Cut)
	takeBack := func(ctx context.Context, on backend.Backend) error { return on.Return(ctx, a, nil) }
	s.inPasses(t, "Return without the provider", takeBack, func() bool { return s.node(t, a) == nil })
	require.NotNil(t, s.found(t, a), "what is left is listed")
	require.NoError(t, undo(s.ctx(t)))
	s.inPasses(t, "Return", takeBack, nil)
	require.Empty(t, s.objectsOf(t, a))
	s.unpeered(t, p)
}
