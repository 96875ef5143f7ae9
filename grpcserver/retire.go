package grpcserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
)

// retire marks a group that is no longer in the config. From now on the group can only shrink. CA must still see the
// group while it has nodes, because CA never removes nodes that belong to no group.
func (s *Server) retire(g *group) {
	now := g.terms.Load()
	if now.retired && now.next == nil {
		return
	}
	t := *now
	t.retired, t.next, t.kept = true, nil, ""
	g.terms.Store(&t)
	s.log.Info("node group removed from the config; it is served until it is empty", "group", g.id)
}

// dropEmpty removes the empty retired groups from the roster and closes their workflows.
func (s *Server) dropEmpty(ctx context.Context) {
	for _, g := range s.removeEmpty() {
		s.log.Info("removed node group is empty and is no longer served", "group", g.id)
		if err := s.groups.Close(ctx, g.id); err != nil {
			s.log.Warn("the workflow of a removed node group cannot be closed; this does no harm", "group", g.id, "error", err)
		}
		s.serveAgain(g.terms.Load().next)
	}
}

func (s *Server) removeEmpty() []*group {
	if s.market != nil {
		if _, known := s.market(); !known {
			return nil // while the offers are unknown, a derived group may be retired by mistake
		}
	}
	s.reloading.Lock()
	defer s.reloading.Unlock()
	r := s.roster.Load()
	list := slices.DeleteFunc(slices.Clone(r.list), func(g *group) bool {
		if !g.turn.TryAcquire(1) { // a mutation of the group is running
			return false
		}
		defer g.turn.Release(1)
		return g.isGone()
	})
	if len(list) == len(r.list) {
		return nil
	}
	var gone []*group
	for _, g := range r.list {
		if !slices.Contains(list, g) {
			gone = append(gone, g)
			s.ended.add(g.account(), g.picture.Load().Snapshot) // before the account's balance omits the group
		}
	}
	s.roster.Store(newRoster(list, r.limits))
	return gone
}

// isGone reports whether the group is retired and the server knows that all its instances are gone.
func (g *group) isGone() bool {
	p := g.picture.Load()
	return g.terms.Load().retired && p != nil && len(p.Instances) == 0 && !g.isDirty() && g.unusable.Load() == nil
}

// findTimeout bounds the search for retired groups, so that a Refresh has time left for its other work.
const findTimeout = 2 * time.Second

// findEvery is the interval at which the server lists the running groups again, because a new group may appear late
// in Temporal's visibility index.
const findEvery = time.Minute

// findRetired searches for groups that were removed from the config while no server ran. If such a group still has
// instances or standby peerings, findRetired adds the group to the roster. It searches after each change of the
// config, and at intervals of findEvery. It only logs a failure, and the next call tries again. Until then CA does
// not see these groups, and keeps their nodes.
func (s *Server) findRetired(ctx context.Context) {
	if s.searched.Load() && time.Since(time.Unix(0, s.searchedAt.Load())) < findEvery {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, findTimeout)
	defer cancel()
	s.reloading.Lock()
	defer s.reloading.Unlock()
	if err := s.addRetired(ctx); err != nil {
		s.log.Warn("node groups that are no longer configured cannot be listed yet", "error", err)
		return
	}
	s.searchedAt.Store(time.Now().UnixNano())
	s.searched.Store(true)
}

func (s *Server) addRetired(ctx context.Context) error {
	running, err := s.groups.Running(ctx)
	if err != nil {
		return err
	}
	r := s.roster.Load()
	list := slices.Clone(r.list)
	var idle []money.Spent
	for _, id := range running {
		if r.byID[id] != nil {
			continue
		}
		snapshot, err := s.groups.Snapshot(ctx, id)
		if errors.Is(err, fleet.ErrNotRunning) {
			continue // the group has ended, and Temporal's visibility index does not show this yet
		}
		if err != nil {
			return fmt.Errorf("read node group %s: %w", id, err)
		}
		if snapshot.Spec == nil || len(snapshot.Instances)+len(snapshot.Standby) == 0 {
			if account, _ := snapshot.Account(); !snapshot.Cost.IsEmpty() {
				idle = append(idle, spentOf(account, snapshot))
			}
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
	s.ended.setIdle(idle)
	if len(list) > len(r.list) {
		s.roster.Store(newRoster(list, r.limits))
	}
	return nil
}

// These constants are the messages about groups that can only shrink.
const (
	noticeReplaced = "its template changed: it only shrinks, and starts again with the new template when it is empty"
	noticeRetired  = "it is no longer in the config: it only shrinks, and ends when it is empty"
)

// notice returns a message if the group can only shrink or its configured template is not in force. `liqo-autoscaler
// status` shows this message.
func (t *terms) notice() fleet.GroupNotice {
	switch {
	case t.kept != "":
		return fleet.GroupNotice{Name: fleet.BlockChangeNotInForce, Message: t.kept}
	case t.next != nil:
		return fleet.GroupNotice{Name: fleet.BlockRetired, Message: noticeReplaced}
	case t.retired:
		return fleet.GroupNotice{Name: fleet.BlockRetired, Message: noticeRetired}
	}
	return fleet.GroupNotice{}
}

// notify sends the group's notice to the group if the notice has changed. It does nothing while a mutation of the
// group runs, or if the group runs another spec. It only logs a failure, and the next Refresh tries again.
func (s *Server) notify(ctx context.Context, g *group) {
	t, p := g.terms.Load(), g.picture.Load()
	if p == nil || p.SpecHash != t.hash || p.Notice == t.notice() || g.isDirty() {
		return
	}
	if !g.turn.TryAcquire(1) {
		return
	}
	defer g.turn.Release(1)
	ctx, cancel := context.WithTimeout(ctx, configureTimeout)
	defer cancel()
	at, err := s.groups.Configure(ctx, t.spec, t.notice(), g.seen())
	if err == nil {
		_, err = s.readFrom(ctx, g, at)
	}
	if err != nil {
		s.log.Warn("cannot update the notice of a node group; status may be outdated", "group", g.id, "error", err)
	}
}
