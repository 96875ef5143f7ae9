package backendtest

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

func (o Object) of(attempts ...fleet.Attempt) bool {
	for _, a := range attempts {
		if strings.Contains(o.Name, a.ObjectName()) {
			return true
		}
	}
	return false
}

func (s *suite) testJoinDenied(t *testing.T) {
	a := s.attempt(instDenied, 1, s.first())
	s.established(t, a.Provider)
	undo := s.with(t, a.Provider, "Deny", s.World.Deny)
	_, err := s.Backend.Join(s.ctx(t), s.spec(a), nil)
	require.ErrorIs(t, err, backend.ErrDenied)
	require.NoError(t, undo(s.ctx(t)))
	s.left(t, a)
	require.Empty(t, s.objectsOf(t, a))
}

func (s *suite) testJoinShort(t *testing.T) {
	a := s.attempt(instShort, 1, s.first())
	s.established(t, a.Provider)
	undo := s.with(t, a.Provider, "Shrink", s.World.Shrink)
	_, err := s.Backend.Join(s.ctx(t), s.spec(a), nil)
	require.ErrorIs(t, err, backend.ErrShort)
	require.Nil(t, s.node(t, a), "no Node of a smaller shape is made")
	require.NoError(t, undo(s.ctx(t)))
	s.left(t, a)
	require.Empty(t, s.objectsOf(t, a))
}

// Class is the class that the suite requests when a controller of the provider must decide.
const Class = "gold"

func (s *suite) testJoinFull(t *testing.T) {
	a := s.attempt(instFull, 1, s.first())
	s.established(t, a.Provider)
	undo := s.with(t, a.Provider, "Fill", s.World.Fill)
	spec := s.spec(a)
	spec.Class = Class
	_, err := s.Backend.Join(s.ctx(t), spec, nil)
	require.ErrorIs(t, err, backend.ErrFull)
	require.NotErrorIs(t, err, context.DeadlineExceeded, "it is not waited for")
	require.NotErrorIs(t, err, backend.ErrDenied, "the provider has no room, and refuses nobody")
	require.NoError(t, undo(s.ctx(t)))
	s.left(t, a)
	require.Empty(t, s.objectsOf(t, a))
}
