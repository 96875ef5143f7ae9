package backendtest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// testObserveUnpeered checks that Observe returns the zero Observation for a provider without a peering, after the
// provider has answered.
func (s *suite) testObserveUnpeered(t *testing.T) {
	seen, err := s.Backend.Observe(s.ctx(t), s.first())
	require.NoError(t, err)
	require.Zero(t, seen)
	if s.World.Unreachable != nil {
		p := s.first()
		p.Credentials = s.World.Unreachable(t, secret)
		_, err := s.Backend.Observe(s.ctx(t), p)
		require.ErrorIs(t, err, backend.ErrUnreachable)
		require.NotContains(t, err.Error(), secret, "a secret is in the error")
	}
}

func (s *suite) testObserve(t *testing.T) {
	a := s.attempt(instFirst, 1, s.first())
	s.joined(t, a)
	seen, err := s.Other.Observe(s.ctx(t), a.Provider)
	require.NoError(t, err)
	require.Zero(t, seen, "all is well")

	undo := s.with(t, a.Provider, "Deny", s.World.Deny)
	seen, err = s.Backend.Observe(s.ctx(t), a.Provider)
	require.NoError(t, err)
	require.Equal(t, fleet.RefusingCordoned, seen.Tenant)
	require.NotEmpty(t, seen.Message)
	require.Empty(t, seen.Absent)
	require.NoError(t, undo(s.ctx(t)))
}

func (s *suite) testObserveWhileCut(t *testing.T) {
	a := s.attempt(instFirst, 1, s.first())
	s.joined(t, a)
	undo := s.with(t, a.Provider, "Cut", s.World.Cut)
	seen, err := s.Backend.Observe(s.ctx(t), a.Provider)
	require.ErrorIs(t, err, backend.ErrUnreachable)
	require.NotErrorIs(t, err, backend.ErrCredentials)
	require.Zero(t, seen)
	require.NoError(t, undo(s.ctx(t)))
	seen, err = s.Backend.Observe(s.ctx(t), a.Provider)
	require.NoError(t, err)
	require.Zero(t, seen)
}

// testCordon checks that every process recognizes a Node that Cordon has cordoned, and can uncordon it. A missing Node
// is not an error.
func (s *suite) testCordon(t *testing.T) {
	a := s.attempt(instFirst, 1, s.first())
	s.joined(t, a)
	for _, cordoned := range []bool{true, true, false, false} {
		require.NoError(t, s.Backend.Cordon(s.prompt(t), a, cordoned))
		require.Equal(t, cordoned, s.node(t, a).Spec.Unschedulable)
		require.Equal(t, cordoned, s.found(t, a).Cordoned)
	}
	require.NoError(t, s.Backend.Cordon(s.prompt(t), s.attempt(instAbsent, 1, s.first()), true))
}
