package backendtest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// testSecondAttempt makes an instance's second attempt, on another provider, while its first attempt is stamped. The
// Join of the second attempt fails, and does not change the first attempt. Two Nodes must never carry the same
// instance id. Therefore the second Node is stamped only after the first attempt was drained and its Node is gone.
func (s *suite) testSecondAttempt(t *testing.T) {
	one, two := s.attempt(instSecond, 1, s.first()), s.attempt(instSecond, 2, s.second())
	s.joined(t, one)
	s.established(t, two.Provider)
	_, err := s.Other.Join(s.ctx(t), s.spec(two), nil)
	require.ErrorIs(t, err, backend.ErrConflict, "the first attempt is the instance")
	require.ErrorContains(t, err, one.ObjectName())
	require.True(t, whole(*s.found(t, one)))
	s.requireUnstamped(t, two)

	require.NoError(t, s.Backend.Drain(s.ctx(t), one, false, nil))
	ctx, stop := s.stoppable(t)
	rec := &recorder{}
	rec.each = func(stage backend.Stage) {
		if stage == backend.StageStamp && rec.count(stage) > 1 {
			stop() // the second report: Join waits
		}
	}
	_, err = s.Other.Join(ctx, s.spec(two), rec.progress)
	require.Equal(t, backend.StageStamp, requireStopped(t, err))
	require.Equal(t, one.InstanceID(), s.node(t, one).Spec.ProviderID)
	s.requireUnstamped(t, two)

	s.left(t, one)
	_, err = s.Other.Join(s.ctx(t), s.spec(two), nil)
	require.NoError(t, err)
	require.Equal(t, two.InstanceID(), s.node(t, two).Spec.ProviderID)
	require.True(t, s.found(t, two).Marked)

	s.left(t, two)
	s.unpeered(t, two.Provider)
	require.Empty(t, s.objects(t, two.Provider))
}

// testSecondAttemptBesideFirst makes a second attempt while the Node of the first attempt exists but was never
// stamped. The first attempt does not delay the second one.
func (s *suite) testSecondAttemptBesideFirst(t *testing.T) {
	one, two := s.attempt(instBeside, 1, s.first()), s.attempt(instBeside, 2, s.second())
	s.established(t, one.Provider)
	s.established(t, two.Provider)
	ctx, stop := s.stoppable(t)
	_, err := s.Backend.Join(ctx, s.spec(one), func(backend.Stage, string) {
		if s.node(t, one) != nil {
			stop()
		}
	})
	requireStopped(t, err)
	s.requireUnstamped(t, one)
	_, err = s.Backend.Join(s.ctx(t), s.spec(two), nil)
	require.NoError(t, err)
	require.NotNil(t, s.node(t, one))

	_, err = s.Other.Join(s.ctx(t), s.spec(one), nil)
	require.ErrorIs(t, err, backend.ErrConflict, "the second attempt is the instance now")
	s.requireUnstamped(t, one)
	s.left(t, one)
	s.left(t, two)
}

func (s *suite) requireUnstamped(t *testing.T, a fleet.Attempt) {
	t.Helper()
	node := s.node(t, a)
	require.NotNil(t, node)
	require.Empty(t, node.Spec.ProviderID)
	require.False(t, s.found(t, a).Marked)
}
