package backendtest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

func (s *suite) testUnpeerInUse(t *testing.T) {
	a := s.attempt(instFirst, 1, s.first())
	s.joined(t, a)
	before, uid := s.objects(t, a.Provider), s.node(t, a).UID
	require.ErrorIs(t, s.Backend.RemovePeering(s.prompt(t), a.Provider, nil), backend.ErrInUse)
	require.Equal(t, before, s.objects(t, a.Provider), "a refused RemovePeering changes nothing")
	require.Equal(t, uid, s.node(t, a).UID)
	require.True(t, isReady(s.node(t, a)))
}

// testUnpeerForeignSlice checks that RemovePeering keeps our peering while another owner's slice uses it (I11).
func (s *suite) testUnpeerForeignSlice(t *testing.T) {
	if s.World.PutSlice == nil {
		t.Skip("this harness has no World.PutSlice")
	}
	p := s.first()
	s.unpeered(t, p)
	s.established(t, p)
	// The slice's name contains the epoch and also the group, because two processes that start in the same second
	// have the same epoch. The name has no dash after the group: with a dash, the lab would take this slice for an
	// object that is derived from the suite's own objects.
	undo, err := s.World.PutSlice(s.ctx(t), p, "someone-else-"+s.Group+s.epoch)
	require.NoError(t, err)
	s.undoLater(t, "PutSlice", undo)
	before := s.objects(t, p)
	require.ErrorIs(t, s.Backend.RemovePeering(s.prompt(t), p, nil), backend.ErrInUse)
	require.Equal(t, before, s.objects(t, p), "a refused RemovePeering changes nothing")
	require.NoError(t, undo(s.ctx(t)))
}

func (s *suite) testUnpeer(t *testing.T) {
	p := s.first()
	s.unpeered(t, p)
	s.established(t, p)
	rec := &recorder{}
	require.NoError(t, s.Backend.RemovePeering(s.ctx(t), p, rec.progress))
	requireOrder(t, removeOrder, rec.stages)
	require.Empty(t, s.objects(t, p), "nothing is left on either side")
	require.NoError(t, s.Other.RemovePeering(s.prompt(t), p, nil), "twice")
	peers, err := s.Backend.Peers(s.prompt(t), "")
	require.NoError(t, err)
	for _, peer := range peers {
		require.NotEqual(t, p.ID, peer.ID)
	}
}

// testUnpeerWhileCut checks that RemovePeering tries again until its context ends while the provider is cut off.
// Another process completes the removal later.
func (s *suite) testUnpeerWhileCut(t *testing.T) {
	p := s.second()
	s.established(t, p)
	undo := s.with(t, p, "Cut", s.World.Cut)
	ctx, stop := s.stoppable(t)
	rec := &recorder{}
	rec.each = func(stage backend.Stage) {
		if rec.count(stage) > 1 {
			stop()
		}
	}
	stage := requireStopped(t, s.Backend.RemovePeering(ctx, p, rec.progress))
	requireOrder(t, removeOrder, append(rec.stages, stage))
	require.NotEmpty(t, s.objects(t, p), "what is left is not forgotten")

	require.NoError(t, undo(s.ctx(t)))
	require.NoError(t, s.Other.RemovePeering(s.ctx(t), p, nil))
	require.Empty(t, s.objects(t, p))
}

// testAtRest checks that no object owned by us exists on any cluster at the end (I9).
func (s *suite) testAtRest(t *testing.T) {
	for _, p := range s.Providers {
		s.unpeered(t, p)
		require.Empty(t, s.objects(t, p))
	}
	list, err := s.Backend.List(s.prompt(t), backend.Scope{Group: s.Group})
	require.NoError(t, err)
	require.Empty(t, list)
}
