package grpcserver

import (
	"context"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Messages of groups that only shrink.
const (
	noticeReplaced = "its template changed: it only shrinks, and begins anew with the new one when it is empty"
	noticeRetired  = "it is no longer in the config: it only shrinks, and ends when it is empty"
)

// notice returns the message about the terms, which the group's status shows.
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

// notify updates the notice of a group whose spec is in force, which status shows. It waits for no mutation and returns
// no error; the next Refresh tries again after a failure.
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
		s.log.Warn("what status says of the config of a node group is not up to date", "group", g.id, "error", err)
	}
}
