package show

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Selection selects a part of a status. An empty list selects everything.
type Selection struct {
	// Groups and Providers are names or patterns for path.Match.
	Groups, Providers []string
	// Phases are phases in the form that Instance.Shown returns.
	Phases []string
}

// Phases are the phases that a Selection accepts, in the order in which an instance passes through them.
var Phases = []string{string(fleet.Pending), string(fleet.Discovering), string(fleet.Selecting), string(fleet.Peering),
	string(fleet.Joining), string(fleet.Ready), NotReady, string(fleet.Draining), string(fleet.Unpeering),
	string(fleet.Failed), string(fleet.Released)}

// Check returns an error for an invalid pattern or phase. It corrects the letter case of phases.
func (s *Selection) Check() error {
	for n, phase := range s.Phases {
		at := slices.IndexFunc(Phases, func(p string) bool { return strings.EqualFold(p, phase) })
		if at < 0 {
			return fmt.Errorf("--phase %q: use %s", phase, strings.Join(Phases, ", "))
		}
		s.Phases[n] = Phases[at]
	}
	for flag, patterns := range map[string][]string{"group": s.Groups, "provider": s.Providers} {
		for _, pattern := range patterns {
			if _, err := path.Match(pattern, ""); err != nil {
				return fmt.Errorf("--%s %q: %w", flag, pattern, err)
			}
		}
	}
	return nil
}

// IsPattern reports whether the text is a pattern, which may match several names.
func IsPattern(text string) bool { return strings.ContainsAny(text, `*?[\`) }

// Matches reports whether one of the names and patterns matches the name. An empty list matches every name.
func Matches(patterns []string, name string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	})
}

// Instance reports whether the instance is selected.
func (s Selection) Instance(i Instance) bool {
	return Matches(s.Groups, i.Group) && Matches(s.Providers, i.Provider) &&
		(len(s.Phases) == 0 || slices.Contains(s.Phases, i.Shown()))
}

// Of returns the selected part of the status. If providers or phases are selected, Of omits each group that has no
// selected instance and no selected standby peering.
func (s Status) Of(sel Selection) Status {
	s.Instances = slices.DeleteFunc(s.Instances, func(i Instance) bool { return !sel.Instance(i) })
	s.Standby = slices.DeleteFunc(s.Standby, func(b Standby) bool {
		return !Matches(sel.Groups, b.Group) || !Matches(sel.Providers, b.Provider) || len(sel.Phases) > 0
	})
	here := map[string]bool{}
	for _, i := range s.Instances {
		here[i.Group] = true
	}
	for _, b := range s.Standby {
		here[b.Group] = true
	}
	s.selected = s.selected || len(s.Groups) > 0 && len(sel.Phases)+len(sel.Providers) > 0
	s.Groups = slices.DeleteFunc(s.Groups, func(g Group) bool {
		return !Matches(sel.Groups, g.Name) || s.selected && !here[g.Name]
	})
	s.Conditions = slices.DeleteFunc(s.Conditions, func(c Condition) bool { return !Matches(sel.Providers, c.Provider) })
	s.Refusing = slices.DeleteFunc(s.Refusing, func(r Refusing) bool { return !Matches(sel.Providers, r.Provider) })
	return s
}

// Finding reports whether a finding about a group or a provider is selected. A parameter is "" if the group or the
// provider is unknown.
func (s Selection) Finding(group, provider string) bool {
	return (group == "" || Matches(s.Groups, group)) && (provider == "" || Matches(s.Providers, provider))
}
