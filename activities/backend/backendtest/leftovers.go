package backendtest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

// testLeftovers checks that Leftovers lists the objects that exist only on the provider: first the slice, then the
// peering. It does not list objects that still have a counterpart on the consumer, and lists no object twice.
func (s *suite) testLeftovers(t *testing.T) {
	sweeps, ok := s.Backend.(backend.Leftovers)
	if !ok || s.World.Forget == nil {
		t.Skipf("%T is no backend.Leftovers, or World.Forget is not set", s.Backend)
	}
	p := s.second()
	a := s.attempt(instLeft, 1, p)
	s.joined(t, a)
	left, err := sweeps.Leftovers(s.prompt(t), p)
	require.NoError(t, err)
	require.Empty(t, left, "all of it has its counterpart")

	require.NoError(t, s.World.Forget(s.ctx(t), p))
	left, err = sweeps.Leftovers(s.ctx(t), p)
	require.NoError(t, err)
	require.Len(t, left, 2, "%+v", left)
	require.Equal(t, a, left[0].Attempt)
	require.True(t, left[1].OfPeering())
	require.Equal(t, p.ID, left[1].Attempt.Provider.ID)
	for _, o := range left {
		require.False(t, o.Foreign, "%+v", o)
		require.NotEmpty(t, o.UID)
		require.NotEmpty(t, o.Object)
	}

	other := left[0]
	other.UID = "another"
	require.NoError(t, sweeps.RemoveLeftover(s.ctx(t), other), "not what was listed: left alone")
	again, err := sweeps.Leftovers(s.ctx(t), p)
	require.NoError(t, err)
	require.Equal(t, left, again)

	require.NoError(t, sweeps.RemoveLeftover(s.ctx(t), left[0]))
	require.Eventually(t, func() bool {
		now, err := sweeps.Leftovers(s.ctx(t), p)
		return err == nil && len(now) == 1 && now[0].OfPeering()
	}, s.Bound, s.Bound/100, "the slice is gone, the peering is left")
	require.NoError(t, sweeps.RemoveLeftover(s.ctx(t), left[0]), "twice")
	require.NoError(t, s.Backend.RemovePeering(s.ctx(t), p, nil))
	require.Empty(t, s.objects(t, p))
}
