package backendtest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// testRefusalKept checks that a refusal by a cordoned or drained Tenant stays in effect until the provider ends it.
// The removal of our objects does not end the refusal. A new process still finds it.
func (s *suite) testRefusalKept(t *testing.T) {
	for _, kind := range []fleet.RefusingKind{fleet.RefusingCordoned, fleet.RefusingDrained} {
		t.Run(string(kind), func(t *testing.T) {
			p := s.second()
			s.unpeered(t, p)
			s.established(t, p)
			lift := s.close(t, p, kind)
			s.requireRefused(t, p, kind, s.Backend.Establish(s.ctx(t), p, nil))
			for range 2 {
				s.requireRefused(t, p, kind, s.Backend.RemovePeering(s.ctx(t), p, nil))
				left := s.objects(t, p)
				require.NotEmpty(t, left, "the provider's word is kept")
				for _, o := range left {
					require.True(t, o.Where == p.ID, "nothing stays on the consumer: %v", o)
				}
				require.True(t, slices.ContainsFunc(left, func(o Object) bool { return o.Refusal }), "it is marked: %v", left)
			}
			s.requireRefused(t, p, kind, s.Other.Establish(s.ctx(t), p, nil))

			require.NoError(t, lift(s.ctx(t)))
			none, err := s.Backend.Refusal(s.prompt(t), p)
			require.NoError(t, err)
			require.Nil(t, none)
			s.established(t, p)
			require.False(t, slices.ContainsFunc(s.objects(t, p), func(o Object) bool { return o.Refusal }), "no mark is left")
			require.NoError(t, s.Backend.RemovePeering(s.ctx(t), p, nil))
			require.Empty(t, s.objects(t, p))
		})
	}
}

// testRefusedJoin checks that Join reports a refusal that begins after the peering was established, and that the
// attempt can be undone.
func (s *suite) testRefusedJoin(t *testing.T) {
	p := s.second()
	s.unpeered(t, p)
	s.established(t, p)
	lift := s.close(t, p, fleet.RefusingCordoned)
	a := s.attempt(instRefused, 1, p)
	_, err := s.Backend.Join(s.ctx(t), s.spec(a), nil)
	s.requireRefused(t, p, fleet.RefusingCordoned, err)
	s.left(t, a)
	require.NoError(t, lift(s.ctx(t)))
	s.unpeered(t, p)
}

// testRemovedRefuses checks that, after a provider has removed its part of our peering, the backend does not use this
// provider for RefusedFor. The record of this refusal is on the consumer.
func (s *suite) testRemovedRefuses(t *testing.T) {
	p := s.second()
	s.unpeered(t, p)
	s.established(t, p)
	s.close(t, p, fleet.RefusingRemoved)
	s.requireRefused(t, p, fleet.RefusingRemoved, s.Backend.Establish(s.ctx(t), p, nil))
	s.requireRefused(t, p, fleet.RefusingRemoved, s.Backend.RemovePeering(s.ctx(t), p, nil))
	s.requireRefused(t, p, fleet.RefusingRemoved, s.Other.Establish(s.ctx(t), p, nil))
	peers, err := s.Other.Peers(s.prompt(t), "")
	require.NoError(t, err)
	n := slices.IndexFunc(peers, func(peer fleet.Provider) bool { return peer.ID == p.ID })
	require.GreaterOrEqual(t, n, 0, "who has lost everything still finds it: %v", peers)
	require.NotNil(t, peers[n].Refusing)
	require.Equal(t, p.Credentials, peers[n].Credentials)
	require.False(t, peers[n].Refusing.Until.IsZero())
	if s.RefusedFor == 0 {
		t.Skip("this harness has no RefusedFor: what is left is not waited for")
	}
	testkit.Until(t, s.Bound, "the refusal is over", func() error {
		found, err := s.Backend.Refusal(s.prompt(t), p)
		if err == nil && found != nil {
			err = fmt.Errorf("it refuses: %s", found.Reason)
		}
		return err
	})
	require.NoError(t, s.Backend.RemovePeering(s.ctx(t), p, nil))
	require.Empty(t, s.objects(t, p))
}

func (s *suite) close(t *testing.T, p fleet.Provider, kind fleet.RefusingKind) Undo {
	t.Helper()
	if s.World.Close == nil {
		t.Skip("this harness has no World.Close")
	}
	undo, err := s.World.Close(s.ctx(t), p, kind)
	require.NoError(t, err, "World.Close")
	s.undoLater(t, "Close", undo)
	return undo
}

// requireRefused asserts that the error of a verb reports the refusal, and that both backends can read the refusal.
func (s *suite) requireRefused(t *testing.T, p fleet.Provider, kind fleet.RefusingKind, err error) {
	t.Helper()
	require.ErrorIs(t, err, backend.ErrDenied)
	var refusing *backend.RefusingError
	require.True(t, errors.As(err, &refusing), "%v", err)
	require.Equal(t, kind, refusing.Kind)
	require.NotEmpty(t, refusing.Reason)
	require.Equal(t, kind == fleet.RefusingRemoved, !refusing.Until.IsZero(), "only the last one ends by itself")
	found, err := s.Other.Refusal(s.prompt(t), p)
	require.NoError(t, err)
	require.NotNil(t, found)
	require.Equal(t, kind, found.Kind)
}
