package worker_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// When an operation returns, the memo already shows its booking. The answer therefore does not have to contain it
// (invariant I6).
func TestMemoShowsTheBookingOfAReturnedCall(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1).work()
	for n := range 5 {
		at, err := s.groups.Grow(s.ctx, s.spec.ID, 1, 0, fleet.Position{})
		grown := s.shows(at, err)
		require.Equal(t, n+1, at.Booked)
		require.Equal(t, at.Booked, grown.Booked)
		require.Equal(t, 1, grown.Target)
		name := grown.Instances[len(grown.Instances)-1].Name

		at, err = s.groups.Release(s.ctx, s.spec.ID, []string{name}, grown.Position())
		released := s.shows(at, err)
		require.Zero(t, released.Target)
		require.False(t, slices.ContainsFunc(released.Instances, func(i fleet.InstanceView) bool { return i.Counts }))
	}
}
