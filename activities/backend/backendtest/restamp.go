package backendtest

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// testRestampDeletedNode deletes a Node by hand. Its kubelet registers it again, and Restamp sets the instance id
// again.
func (s *suite) testRestampDeletedNode(t *testing.T) {
	a := s.attempt(instWatched, 1, s.first())
	w := s.watch(t)
	s.joined(t, a)
	w.until(t, a, "joined", whole)
	before := s.node(t, a)
	s.deleteNode(t, a)
	n := len(w.reported(a))
	require.NoError(t, s.Backend.Restamp(s.prompt(t), a), "the Node is missing: it is called back, and not waited for")
	w.until(t, a, "registered again", func(f fleet.Found) bool {
		return f.Node && len(w.reported(a)) > n && s.node(t, a) != nil
	})
	s.restamped(t, a)
	after := s.node(t, a)
	require.NotNil(t, after)
	require.Equal(t, a.InstanceID(), after.Spec.ProviderID)
	require.NotEqual(t, before.UID, after.UID)
	w.until(t, a, "stamped and Ready again", whole)
	requireLooks(t, s.spec(a), s.node(t, a))
}

// restamped calls Restamp until the attempt's Node is stamped.
func (s *suite) restamped(t *testing.T, a fleet.Attempt) {
	t.Helper()
	ctx := s.prompt(t)
	for {
		err := s.Backend.Restamp(ctx, a)
		if !errors.Is(err, backend.ErrNotYet) {
			require.NoError(t, err)
			return
		}
		require.Empty(t, s.node(t, a).Spec.ProviderID, "stamped all the same")
		require.True(t, wait.For(ctx, 20*time.Millisecond), "%v", err)
	}
}

// testRestampLeavesAlone checks that Restamp does not change a Node that needs no stamp, or that carries another
// providerID.
func (s *suite) testRestampLeavesAlone(t *testing.T) {
	absent := s.attempt(instAbsent, 1, s.first())
	require.NoError(t, s.Backend.Restamp(s.prompt(t), absent), "absent")
	require.Empty(t, s.objectsOf(t, absent))

	a := s.attempt(instWatched, 1, s.first())
	s.joined(t, a)
	before := s.node(t, a)
	require.NoError(t, s.Backend.Restamp(s.prompt(t), a), "stamped already")
	require.Equal(t, before.Spec, s.node(t, a).Spec)
	require.Equal(t, before.UID, s.node(t, a).UID)

	older := s.attempt(instWatched, 0, s.first())
	require.NoError(t, s.Backend.Restamp(s.prompt(t), older), "another attempt of the instance")

	w := s.watch(t)
	w.until(t, a, "joined", whole)
	require.NoError(t, s.Backend.Drain(s.ctx(t), a, true, nil))
	w.until(t, a, "drained", func(f fleet.Found) bool { return f.Node && f.Stamped && !f.Marked })
	s.deleteNode(t, a)
	w.until(t, a, "registered again", func(f fleet.Found) bool { return f.Node && !f.Stamped })
	require.NoError(t, s.Backend.Restamp(s.prompt(t), a), "not marked")
	require.Empty(t, s.node(t, a).Spec.ProviderID, "a Node without mark was stamped")
	if s.World.SetProviderID != nil {
		const other = "example://somebody"
		require.NoError(t, s.World.SetProviderID(s.prompt(t), a.ObjectName(), other))
		_, err := s.Backend.Join(s.ctx(t), s.spec(a), nil) // Join marks the virtual node again
		require.ErrorIs(t, err, backend.ErrConflict)
		require.ErrorIs(t, s.Backend.Restamp(s.prompt(t), a), backend.ErrConflict)
		require.Equal(t, other, s.node(t, a).Spec.ProviderID)
	}
	s.left(t, a)
	require.NoError(t, s.Backend.Restamp(s.prompt(t), a), "gone")
	require.Empty(t, s.objectsOf(t, a))
}

// testRestampForeignNode checks that Restamp does not stamp another owner's Node that has the attempt's name.
func (s *suite) testRestampForeignNode(t *testing.T) {
	if s.World.PutNode == nil {
		t.Skip("this harness has no World.PutNode")
	}
	a := s.attempt(instConflict, 1, s.first())
	s.left(t, a)
	undo, err := s.World.PutNode(s.prompt(t), a.ObjectName())
	require.NoError(t, err)
	s.undoLater(t, "PutNode", undo)
	require.NoError(t, s.Backend.Restamp(s.prompt(t), a))
	require.Empty(t, s.node(t, a).Spec.ProviderID)
	require.NoError(t, undo(s.prompt(t)))
}

// deleteNode deletes the attempt's Node by hand.
func (s *suite) deleteNode(t *testing.T, a fleet.Attempt) {
	t.Helper()
	if s.World.DeleteNode == nil {
		t.Skip("this harness has no World.DeleteNode")
	}
	require.NotNil(t, s.node(t, a))
	require.NoError(t, s.World.DeleteNode(s.prompt(t), a))
}
