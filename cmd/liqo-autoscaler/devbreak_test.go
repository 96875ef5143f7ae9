package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
)

// Each fault affects only the named provider, and replaces the provider's previous fault. `dev heal` removes it.
func TestMishapAffectsItsProviderOnly(t *testing.T) {
	dir := t.TempDir()
	world, err := sim.Open(filepath.Join(dir, "world.json"))
	require.NoError(t, err)
	for _, id := range []string{"milan", "turin"} {
		require.NoError(t, world.AddProvider(t.Context(), id, nil))
	}
	for _, step := range []struct {
		verb, says string
		check      func(p *sim.Provider) bool
	}{
		{"break", "milan no longer answers", func(p *sim.Provider) bool { return p.Knobs == sim.Knobs{Unreachable: true} }},
		{"slow", "peering/milan", func(p *sim.Provider) bool { return p.Knobs == sim.Knobs{Hang: backend.StageTenant} }},
		{"refuse", "milan refuses", func(p *sim.Provider) bool { return p.Knobs.Refuse == backend.StageResources }},
		{"fill", "milan has no capacity", func(p *sim.Provider) bool {
			cpu, bound := p.Capacity["cpu"]
			return bound && cpu.IsZero() && p.Knobs == sim.Knobs{}
		}},
		{"heal", "milan is healthy again", func(p *sim.Provider) bool { return p.Capacity == nil && p.Knobs == sim.Knobs{} }},
	} {
		out, _, err := command(t.Context(), "dev", step.verb, "milan", "--dir", dir)
		require.NoError(t, err)
		require.Contains(t, out, step.says)
		require.NotContains(t, out, "%!")
		s, err := world.Snapshot()
		require.NoError(t, err)
		require.True(t, step.check(s.Providers["milan"]), "%s: %+v", step.verb, s.Providers["milan"])
		require.Zero(t, s.Providers["turin"].Knobs)
	}
	for says, args := range map[string][]string{
		"none of that name":                       {"break", "nobody", "--dir", dir},
		"start liqo-autoscaler dev first":         {"break", "milan", "--dir", filepath.Join(dir, "elsewhere")},
		`as in "liqo-autoscaler dev break milan"`: {"break"},
		`unknown command "brake"`:                 {"brake", "milan"},
	} {
		_, _, err := command(t.Context(), append([]string{"dev"}, args...)...)
		require.ErrorContains(t, err, says)
	}
	require.NoFileExists(t, filepath.Join(dir, "elsewhere", "world.json"))
}
