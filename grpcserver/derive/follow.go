package derive

import (
	"strings"

	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Follow derives a server's first groups from its configured settings, and makes of what reads the config again one
// whose settings change with the config and with the market.
func (g *Groups) Follow(configured grpcserver.Settings, reload func() (grpcserver.Settings, bool, error)) (
	[]fleet.GroupSpec, func() (grpcserver.Settings, bool, error)) {
	first := g.Expand(configured.Specs)
	served := fingerprint(first)
	return first, func() (grpcserver.Settings, bool, error) {
		settings, changed, err := reload()
		if changed {
			configured = settings
		}
		configured.Version = settings.Version
		settings = configured
		settings.Specs = g.Expand(configured.Specs)
		if now := fingerprint(settings.Specs); err == nil && now != served {
			served, changed = now, true
		}
		return settings, changed && err == nil, err
	}
}

// fingerprint tells sets of groups apart.
func fingerprint(specs []fleet.GroupSpec) string {
	var b strings.Builder
	for _, s := range specs {
		b.WriteString(s.ID + "=" + s.Hash() + " ")
	}
	return b.String()
}
