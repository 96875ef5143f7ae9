package grpcserver

import (
	"slices"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// isDerived reports whether the group is derived from the offers. An operator cannot change the id of such a group in
// the config.
func (s *Server) isDerived(g *group) bool { return s.derived != nil && s.derived.Derives(g.id) }

// replace retires a derived group that runs another template than the configured one, because the template that CA
// receives must match the existing nodes. When the group is empty, the server removes it from the roster and adds it
// again with the new template, see serveAgain.
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

// endRetirement ends the retirement of a group that another replica has already started with the new template.
func (s *Server) endRetirement(g *group, snapshot fleet.Snapshot) {
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

// serveAgain adds a group to the roster again after the group has ended because its template changed. t contains the
// new template. serveAgain does nothing if t is nil or the group is in the roster. The next Refresh starts the group.
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
