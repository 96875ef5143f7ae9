package derive

import (
	"strings"

	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver"
	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver/config"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Source reads the config file again while the server runs; see config.File.
type Source interface {
	Changed() (config.Config, bool, error)
	Hash() string
}

// Follow returns the groups with which the server starts, and a function for Options.Reload. That function returns
// new settings when the config or the derived groups have changed.
func (g *Groups) Follow(configured config.Config, source Source) (
	[]fleet.GroupSpec, func() (grpcserver.Settings, bool, error)) {
	first := g.Expand(configured.NodeGroups)
	served := fingerprint(first)
	return first, func() (grpcserver.Settings, bool, error) {
		next, changed, err := source.Changed()
		if changed {
			configured = next
		}
		settings := grpcserver.Settings{Specs: g.Expand(configured.NodeGroups), Limits: configured.Limits,
			Version: source.Hash()}
		if now := fingerprint(settings.Specs); err == nil && now != served {
			served, changed = now, true
		}
		return settings, changed && err == nil, err
	}
}

// fingerprint returns a text that is equal only for equal sets of specs.
func fingerprint(specs []fleet.GroupSpec) string {
	var b strings.Builder
	for _, s := range specs {
		b.WriteString(s.ID + "=" + s.Hash() + " ")
	}
	return b.String()
}
