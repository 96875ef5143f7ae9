package backendtest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

func (s *suite) testList(t *testing.T) {
	a := s.attempt(instFirst, 1, s.first())
	s.joined(t, a)
	for _, scope := range []backend.Scope{{}, {Group: s.Group}, {Provider: a.Provider.ID},
		{Group: s.Group, Provider: a.Provider.ID}} {
		list, err := s.Other.List(s.prompt(t), scope)
		require.NoError(t, err)
		n := 0
		for i, f := range list {
			require.True(t, i == 0 || list[i-1].Attempt.ObjectName() < f.Attempt.ObjectName(), "in name order, each once")
			if f.Attempt.ObjectName() == a.ObjectName() {
				n++
			}
		}
		require.Equal(t, 1, n, "%s is in List(%+v)", a.ObjectName(), scope)
	}
	for _, scope := range []backend.Scope{{Group: "nobody"}, {Group: "nobody", Provider: a.Provider.ID},
		{Provider: "nobody"}} {
		list, err := s.Backend.List(s.prompt(t), scope)
		require.NoError(t, err)
		require.Empty(t, list, "List(%+v)", scope)
	}

	f := s.found(t, a)
	require.Equal(t, a.Group, f.Attempt.Group)
	require.Equal(t, a.Instance, f.Attempt.Instance)
	require.Equal(t, a.Number, f.Attempt.Number)
	require.Equal(t, a.Provider.ID, f.Attempt.Provider.ID)
	require.True(t, f.Slice && f.Virtual && f.Marked && f.Node && f.Stamped && f.Ready, "%+v", f)
	require.False(t, f.Terminating)
	require.Empty(t, f.Differs, "it is what Cluster Autoscaler was told")

	want := s.spec(a).Booking
	require.NotNil(t, f.Booking)
	require.Equal(t, want.Spec.Hash(), f.Booking.Spec.Hash(), "the booked spec survives")
	require.True(t, want.BookedAt.Equal(f.Booking.BookedAt))
	if s.World.SliceThere == nil {
		return
	}
	annotations, err := s.World.SliceThere(s.prompt(t), a)
	require.NoError(t, err)
	require.NotContains(t, annotations, backend.AnnotationBooking, "what the group is, is none of the provider's business")
	require.NotContains(t, annotations, backend.AnnotationCredentials)
}
