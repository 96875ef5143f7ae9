package backendtest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

func (s *suite) testRemoveAbsent(t *testing.T) {
	for _, p := range s.Providers {
		s.unpeered(t, p)
		a := s.attempt(instAbsent, 1, p)
		require.NoError(t, s.Backend.Drain(s.prompt(t), a, false, nil), "drain")
		require.NoError(t, s.Backend.Drain(s.prompt(t), a, true, nil), "drain with force")
		require.NoError(t, s.Backend.Return(s.prompt(t), a, nil), "leave")
		require.NoError(t, s.Backend.RemovePeering(s.prompt(t), p, nil), "unpeer")
		require.Empty(t, s.objects(t, p))
	}
}

// testLeave checks that Return removes every object of the attempt on the consumer and on the provider, and also a
// pod that a disruption budget protects. During the removal List reports the attempt as terminating.
func (s *suite) testLeave(t *testing.T) {
	a := s.attempt(instFirst, 1, s.first())
	s.joined(t, a)
	if s.World.PutPod != nil {
		require.NoError(t, s.World.PutPod(s.ctx(t), a.ObjectName(), Pod{Name: "last", Protected: true}))
	}
	leaving := false
	rec := &recorder{each: func(backend.Stage) {
		if f := s.found(t, a); f != nil {
			leaving = leaving || f.Terminating
			require.False(t, f.Terminating && f.Marked, "the mark goes first")
		}
	}}
	require.NoError(t, s.Backend.Return(s.ctx(t), a, rec.progress))
	requireOrder(t, []backend.Stage{backend.StageDrain, backend.StageNodeGone, backend.StageSliceGone}, rec.stages)
	require.True(t, leaving, "List never showed Leaving, at stages %q", rec.stages)
	require.Empty(t, s.objectsOf(t, a))
	require.Nil(t, s.node(t, a))
	require.Nil(t, s.found(t, a))
	require.NotEmpty(t, s.objects(t, a.Provider), "the peering stays")
}

// testLeaveHeldPod checks that a pod that has ended, but whose finalizer is never removed, delays neither a drain nor
// a return. The pod itself stays.
func (s *suite) testLeaveHeldPod(t *testing.T) {
	s.needPods(t)
	a := s.attempt(instFirst, 1, s.first())
	s.joined(t, a)
	s.putPods(t, a, Pod{Name: "held", Held: true})
	require.NoError(t, s.Backend.Drain(s.ctx(t), a, false, nil))
	require.Contains(t, s.pods(t, a), "held")
	require.NoError(t, s.Backend.Return(s.ctx(t), a, nil))
	require.Empty(t, s.objectsOf(t, a))
	require.Nil(t, s.node(t, a))
}

func (s *suite) testLeaveTwice(t *testing.T) {
	a := s.attempt(instFirst, 1, s.first())
	s.established(t, a.Provider)
	s.left(t, a)
	require.NoError(t, s.Other.Return(s.prompt(t), a, nil))
	require.NoError(t, s.Other.Drain(s.prompt(t), a, false, nil), "drain of a missing node")
}

// testLeaveWhileCut checks that Return removes the Node while the provider is cut off, and the slice after the provider
// is reachable again.
func (s *suite) testLeaveWhileCut(t *testing.T) {
	a := s.attempt(instCut, 1, s.first())
	s.joined(t, a)
	undo := s.with(t, a.Provider, "Cut", s.World.Cut)
	ctx, stop := s.stoppable(t)
	rec := &recorder{}
	rec.each = func(stage backend.Stage) {
		if stage == backend.StageSliceGone && rec.count(stage) > 1 {
			stop()
		}
	}
	stage := requireStopped(t, s.Backend.Return(ctx, a, rec.progress))
	require.Equal(t, backend.StageSliceGone, stage)
	require.Nil(t, s.node(t, a), "the Node goes although the provider is cut off")
	f := s.found(t, a)
	require.NotNil(t, f, "what is left is listed")
	require.True(t, f.Terminating)
	require.False(t, f.Virtual || f.Node || f.Marked, "%+v", f)

	require.NoError(t, undo(s.ctx(t)))
	require.NoError(t, s.Other.Return(s.ctx(t), a, nil), "another process finishes it")
	require.Empty(t, s.objectsOf(t, a))
}
