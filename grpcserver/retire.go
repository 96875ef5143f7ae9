package grpcserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// Register is what a Groups may have beside: the groups that run, configured or not.
type Register interface {
	// Running lists the ids of the groups that run. It may miss what started or ended seconds ago.
	Running(ctx context.Context) ([]string, error)
	// Close ends an empty group. Configure starts it anew, with a new epoch. Idempotent.
	Close(ctx context.Context, group string) error
}

// retire lets a group only shrink from now on. CA must go on seeing it while it has nodes: without their group they would
// be foreign to it and never be removed.
func (s *Server) retire(g *group) {
	now := g.terms.Load()
	if now.retired {
		return
	}
	t := *now
	t.retired, t.kept = true, ""
	g.terms.Store(&t)
	s.log.Info("node group removed from the config; it is served until it is empty", "group", g.id)
}

// dropEmpty forgets the retired groups that are empty.
func (s *Server) dropEmpty(ctx context.Context) {
	gone := s.takeEmpty()
	register, ok := s.groups.(Register)
	for _, g := range gone {
		s.log.Info("removed node group is empty and gone", "group", g.id)
		if !ok {
			continue
		}
		if err := register.Close(ctx, g.id); err != nil {
			s.log.Warn("workflow of a removed node group could not be closed; it does no harm", "group", g.id, "error", err)
		}
	}
}

func (s *Server) takeEmpty() []*group {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	r := s.roster.Load()
	list := slices.DeleteFunc(slices.Clone(r.list), func(g *group) bool {
		select {
		case <-g.turn: // not while something is booked there
			defer g.giveTurn()
			return g.isGone()
		default:
			return false
		}
	})
	if len(list) == len(r.list) {
		return nil
	}
	s.roster.Store(newRoster(list, r.limits))
	s.tellConfig()
	var gone []*group
	for _, g := range r.list {
		if !slices.Contains(list, g) {
			gone = append(gone, g)
		}
	}
	return gone
}

// isGone tells whether the group is retired and has no instance left, as far as that is known for sure.
func (g *group) isGone() bool {
	p := g.picture.Load()
	return g.terms.Load().retired && p != nil && len(p.Instances) == 0 && g.dirtyUntil().IsZero()
}

// findTimeout bounds the look for retired groups, so that a Refresh has time left for the others.
const findTimeout = 2 * time.Second

// findRetired serves the groups that run with instances and were removed from the config while no server looked. Once done it
// is not repeated until the config changes: only a server removes groups from then on. Until it succeeds CA misses those
// groups and leaves their nodes alone, so a failure is no reason to serve nothing.
func (s *Server) findRetired(ctx context.Context) {
	register, ok := s.groups.(Register)
	if !ok || s.found.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, findTimeout)
	defer cancel()
	s.reloading.Lock()
	defer s.reloading.Unlock()
	if err := s.addRetired(ctx, register); err != nil {
		s.log.Warn("node groups that are no longer configured cannot be looked for yet", "error", err)
		return
	}
	s.found.Store(true)
}

func (s *Server) addRetired(ctx context.Context, register Register) error {
	running, err := register.Running(ctx)
	if err != nil {
		return err
	}
	r := s.roster.Load()
	list := slices.Clone(r.list)
	for _, id := range running {
		if r.byID[id] != nil {
			continue
		}
		snapshot, err := s.groups.Snapshot(ctx, id)
		if errors.Is(err, fleet.ErrNotRunning) {
			continue // ended, which the index has not heard of yet
		}
		if err != nil {
			return fmt.Errorf("read node group %s: %w", id, err)
		}
		if snapshot.Spec == nil || len(snapshot.Instances) == 0 {
			continue
		}
		t, err := newTerms(*snapshot.Spec)
		if err != nil {
			return err
		}
		g := newGroup(t)
		s.retire(g)
		list = append(list, g)
	}
	if len(list) > len(r.list) {
		s.roster.Store(newRoster(list, r.limits))
		s.tellConfig()
	}
	return nil
}
