package grpcserver

import (
	"fmt"
	"strings"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// configState describes the config in force and the last error of a newer config. A stored configState never changes.
type configState struct {
	// version identifies the config in force. since is the time at which this config took effect.
	version string
	since   time.Time
	// broken is the error of a newer version of the config that is invalid, or "".
	broken string
}

// reread reads the config again and applies a new version. If the new version has errors, reread logs them and keeps
// the old version. reread runs in a Refresh by CA, in a server that CA does not call (a standby), and when a request
// contains an unknown group id. At other times the config must not change, because CA relies on constant groups, min
// and max within one of its loops.
func (s *Server) reread() {
	if s.reload == nil {
		return
	}
	s.reloading.Lock()
	defer s.reloading.Unlock()
	state := *s.config.Load()
	settings, changed, err := s.reload()
	if err == nil && changed {
		if err = s.apply(settings); err == nil {
			state.version, state.since = settings.Version, time.Now()
		}
	}
	switch {
	case err != nil && err.Error() != state.broken:
		s.log.Error("the new config has errors; the previous one stays in force", "error", err, "version", state.version)
		state.broken = err.Error()
	case err == nil && state.broken != "":
		state.broken = ""
		s.log.Info("the config has no errors any more", "version", state.version)
	}
	s.config.Store(&state)
}

// apply applies the settings. When it returns an error, the roster is unchanged.
func (s *Server) apply(settings Settings) error {
	all, err := s.termsOf(settings.Specs)
	if err != nil {
		return err
	}
	old := s.roster.Load()
	var list []*group
	stays := map[string]bool{}
	for _, t := range all {
		stays[t.spec.ID] = true
		g := old.byID[t.spec.ID]
		if g == nil {
			s.log.Info("node group added", "group", t.spec.ID, "min", t.spec.Min, "max", t.spec.Max)
			g = newGroup(t)
		} else if err := s.updateTerms(g, t); err != nil {
			return err
		}
		list = append(list, g)
	}
	for _, g := range old.list {
		if !stays[g.id] {
			s.retire(g)
			list = append(list, g)
		}
	}
	s.roster.Store(newRoster(list, settings.Limits))
	s.searched.Store(false) // another replica may have applied this config and started its groups earlier
	s.log.Info("config in force", "version", settings.Version, "groups", len(all), "retired", len(list)-len(all))
	return nil
}

// updateTerms replaces the terms of a group. If CA may already know the group's template, updateTerms keeps the
// template's fields (such as shape, labels and taints). A derived group is retired instead, see replace.
func (s *Server) updateTerms(g *group, t *terms) error {
	now := g.terms.Load()
	inForce := now.spec
	if p := g.picture.Load(); p != nil && p.Spec != nil { // another replica may have changed the spec
		inForce = *p.Spec
	}
	changed := changesTemplate(inForce, t.spec, g.templateKnown())
	if changed && s.isDerived(g) {
		return s.replace(g, inForce, t)
	}
	if changed {
		kept, err := newTerms(t.spec.WithTemplateOf(inForce))
		if err != nil {
			return err
		}
		kept.kept = advice(inForce, t.spec)
		s.log.Warn("changed template of a node group does not take effect", "group", g.id, "why", kept.kept)
		t = kept
	}
	if t.hash != now.hash || now.retired {
		s.log.Info("node group changed", "group", g.id, "min", t.spec.Min, "max", t.spec.Max, "spec", t.hash)
	}
	g.terms.Store(t)
	return nil
}

// advice returns a message that names the changed parts of the template, and the action that the operator must take.
func advice(from, to fleet.GroupSpec) string {
	var what []string
	only := func(name string, part func(fleet.InstanceSpec) fleet.InstanceSpec) {
		if part(from.InstanceSpec).Hash() != part(to.InstanceSpec).Hash() {
			what = append(what, name)
		}
	}
	only("nodes", func(s fleet.InstanceSpec) fleet.InstanceSpec { return fleet.InstanceSpec{Nodes: s.Nodes} })
	only("shape", func(s fleet.InstanceSpec) fleet.InstanceSpec { return fleet.InstanceSpec{Shape: s.Shape} })
	only("labels", func(s fleet.InstanceSpec) fleet.InstanceSpec { return fleet.InstanceSpec{Labels: s.Labels} })
	only("taints", func(s fleet.InstanceSpec) fleet.InstanceSpec {
		return fleet.InstanceSpec{Taints: s.Taints, GroupTaint: s.GroupTaint}
	})
	return fmt.Sprintf("%s changed, but only in the config: give the changed group a new id, and remove the old one; "+
		"Cluster Autoscaler may use the group's old template until it restarts", strings.Join(what, " and "))
}

// templateKnown reports whether CA may already know the template of the group's nodes. This is possible if the group
// has or had instances, or if the server does not know whether it had instances.
func (g *group) templateKnown() bool {
	p := g.picture.Load()
	return p == nil || hadNodes(p.Snapshot) || g.isDirty()
}

// keepTemplate handles a group whose configured template changed while no server ran. It keeps the template in force,
// as updateTerms does. The parameter `first` is the first snapshot of the group that this server has read.
func (s *Server) keepTemplate(g *group, first fleet.Snapshot) {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	configured := g.terms.Load()
	if first.Spec == nil || configured.retired || !changesTemplate(*first.Spec, configured.spec, g.templateKnown()) {
		return
	}
	if s.isDerived(g) {
		if err := s.replace(g, *first.Spec, configured); err != nil {
			s.log.Error("template in force cannot be kept", "group", g.id, "error", err)
		}
		return
	}
	kept, err := newTerms(configured.spec.WithTemplateOf(*first.Spec))
	if err != nil { // a spec from a newer worker, perhaps
		s.log.Error("template in force cannot be kept", "group", g.id, "error", err)
		return
	}
	kept.kept = advice(*first.Spec, configured.spec)
	s.log.Warn("changed template of a node group does not take effect", "group", g.id, "why", kept.kept)
	g.terms.Store(kept)
}
