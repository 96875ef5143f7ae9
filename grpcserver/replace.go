package grpcserver

import (
	"slices"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// isDerived reports whether the group is derived from the offers, so that its id cannot be changed in the config.
func (s *Server) isDerived(g *group) bool { return s.derived != nil && s.derived.Derives(g.id) }

// replace retires a derived group that runs another template than the wanted one, because CA must see its nodes as they
// are. When the group is empty and CA has forgotten it, it starts again with the new template.
func (s *Server) replace(g *group, inForce fleet.GroupSpec, next *terms) error {
	old := g.terms.Load()
	if !old.spec.SameTemplate(inForce) {
		var err error
		if old, err = newTerms(inForce); err != nil { // a spec from a newer worker, perhaps
			return err
		}
	}
	if !old.retired {
		s.log.Info("template of a derived node group changed: it is served until it is empty, and then starts with the "+
			"new template", "group", g.id)
	}
	t := *old
	t.retired, t.next, t.kept = true, next, ""
	g.terms.Store(&t)
	return nil
}

// caughtUp ends the retirement of a group that another server has already started with the new template.
func (s *Server) caughtUp(g *group, snapshot fleet.Snapshot) {
	waits := func() *terms {
		next := g.terms.Load().next
		if next == nil || snapshot.Spec == nil || !snapshot.Spec.SameTemplate(next.spec) {
			return nil
		}
		return next
	}
	if waits() == nil {
		return
	}
	s.reloading.Lock()
	defer s.reloading.Unlock()
	if next := waits(); next != nil {
		g.terms.Store(next)
	}
}

// serveAgain starts to serve a group again that has ended because its template changed, from the next Refresh on.
func (s *Server) serveAgain(t *terms) {
	if t == nil {
		return
	}
	s.reloading.Lock()
	defer s.reloading.Unlock()
	r := s.roster.Load()
	if r.byID[t.spec.ID] != nil {
		return
	}
	s.log.Info("node group starts with its new template", "group", t.spec.ID)
	s.roster.Store(newRoster(append(slices.Clone(r.list), newGroup(t)), r.limits))
}
