package backendtest

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

func (s *suite) testEstablishCancelled(t *testing.T) {
	p := s.first()
	s.unpeered(t, p)
	ctx, stop := s.stoppable(t)
	rec := &recorder{each: func(backend.Stage) { stop() }}
	stage := requireStopped(t, s.Backend.Establish(ctx, p, rec.progress))
	require.NotEmpty(t, rec.stages, "progress was never called")
	requireOrder(t, establishOrder, append(rec.stages, stage))

	// Another process calls Establish, and Establish continues at the stage that the cancelled call reached.
	rec = &recorder{}
	require.NoError(t, s.Other.Establish(s.ctx(t), p, rec.progress))
	requireOrder(t, establishOrder, rec.stages)
	require.NotEmpty(t, s.objects(t, p))
}

// testEstablishCutInNetwork interrupts Establish at each stage of the network. Another process then either continues
// the work or undoes it.
func (s *suite) testEstablishCutInNetwork(t *testing.T) {
	p := s.second()
	s.unpeered(t, p)
	whole := &recorder{}
	require.NoError(t, s.Backend.Establish(s.ctx(t), p, whole.progress))
	s.unpeered(t, p)
	for n, cut := range slices.Compact(whole.stages) {
		if !cut.OfNetwork() {
			continue
		}
		ctx, stop := s.stoppable(t)
		err := s.Backend.Establish(ctx, p, func(stage backend.Stage, _ string) {
			if stage == cut {
				stop()
			}
		})
		require.Equal(t, cut, requireStopped(t, err))
		if n%2 == 0 {
			require.NoError(t, s.Other.Establish(s.ctx(t), p, nil), "after a cut at %s", cut)
		}
		require.NoError(t, s.Other.RemovePeering(s.ctx(t), p, nil))
		require.Empty(t, s.objects(t, p), "after a cut at %s", cut)
	}
}

func (s *suite) testEstablishTwice(t *testing.T) {
	p := s.first()
	s.established(t, p)
	before := s.objects(t, p)
	require.NoError(t, s.Other.Establish(s.ctx(t), p, nil))
	require.Equal(t, before, s.objects(t, p))
	where := map[string]bool{}
	for _, o := range before {
		where[o.Where] = true
	}
	require.True(t, where["consumer"] && where[p.ID] != s.OneSided, "World.Objects sees a peering on both sides: %v",
		before)
}

func (s *suite) testPeers(t *testing.T) {
	s.established(t, s.first())
	only, err := s.Other.Peers(s.prompt(t), s.first().ID)
	require.NoError(t, err)
	require.Len(t, only, 1)
	require.Equal(t, s.first().ID, only[0].ID)
	peers, err := s.Other.Peers(s.prompt(t), "")
	require.NoError(t, err)
	require.Subset(t, peers, only)
	n := 0
	for i, p := range peers {
		require.True(t, i == 0 || peers[i-1].ID < p.ID, "peers are in id order, each once: %v", peers)
		if p.ID == s.first().ID {
			n++
			require.Equal(t, s.first().Credentials, p.Credentials, "the credentials reference survives")
		}
	}
	require.Equal(t, 1, n, "%s is in %v", s.first().ID, peers)
}

// testForeignPeering checks that Establish uses an existing peering that was made by hand and does not change it.
// RemovePeering keeps this peering.
func (s *suite) testForeignPeering(t *testing.T) {
	p := s.second()
	s.unpeered(t, p)
	undo := s.with(t, p, "PutPeering", s.World.PutPeering)
	require.NoError(t, s.Backend.Establish(s.ctx(t), p, nil))
	require.Empty(t, s.objects(t, p), "a peering that is not ours was labelled")
	peers, err := s.Backend.Peers(s.prompt(t), "")
	require.NoError(t, err)
	for _, peer := range peers {
		require.NotEqual(t, p.ID, peer.ID, "a peering that is not ours is listed")
	}
	require.NoError(t, s.Backend.RemovePeering(s.ctx(t), p, nil))

	// After a further call of Establish the peering still works: a node can join.
	require.NoError(t, s.Backend.Establish(s.ctx(t), p, nil))
	a := s.attempt(instForeign, 1, p)
	_, err = s.Backend.Join(s.ctx(t), s.spec(a), nil)
	require.NoError(t, err)
	s.left(t, a)
	require.Empty(t, s.objects(t, p))
	require.NoError(t, undo(s.ctx(t)))
}

func (s *suite) testEstablishStalled(t *testing.T) {
	p := s.second()
	s.unpeered(t, p)
	resume := s.with(t, p, "Stall", s.World.Stall)
	ctx, stop := s.stoppable(t)
	rec := &recorder{}
	rec.each = func(stage backend.Stage) {
		if rec.count(stage) > 1 && (s.World.StallStage == "" || stage == s.World.StallStage) {
			stop() // the second report: Establish waits at this stage
		}
	}
	stage := requireStopped(t, s.Backend.Establish(ctx, p, rec.progress))
	if s.World.StallStage != "" {
		require.Equal(t, s.World.StallStage, stage)
	}

	// This subtest resumes the interrupted call; other subtests undo its effects.
	require.NoError(t, resume(s.ctx(t)))
	require.NoError(t, s.Backend.Establish(s.ctx(t), p, nil))
	s.unpeered(t, p)
	require.Empty(t, s.objects(t, p))
}

func (s *suite) testEstablishWhileCut(t *testing.T) {
	p := s.second()
	s.unpeered(t, p)
	s.with(t, p, "Cut", s.World.Cut)
	ctx, stop := s.stoppable(t)
	rec := &recorder{}
	rec.each = func(stage backend.Stage) {
		if rec.count(stage) > 1 {
			stop()
		}
	}
	err := s.Backend.Establish(ctx, p, rec.progress)
	require.Error(t, err)
	require.True(t, errors.Is(err, backend.ErrUnreachable) || stageOf(err) == backend.StageAPIServer,
		"a provider that cannot be reached is told as such: %v", err)
}
