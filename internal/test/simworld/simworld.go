// Package simworld builds simulated worlds with providers, their kubeconfigs and their offers.
package simworld

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// World is a simulated world whose files are in one folder: world.json, offers.yaml and a kubeconfig for each provider.
type World struct {
	*sim.World
	Dir string
}

// Provider is a provider cluster. Offer contains YAML fields of its offer, such as "price: 1", except the name and
// the credentials.
type Provider struct{ Name, Offer string }

// New creates a world with the given providers in the folder dir, such as t.TempDir().
func New(t testing.TB, dir string, delays sim.Delays, providers ...Provider) *World {
	t.Helper()
	w, err := sim.Open(filepath.Join(dir, "world.json"))
	require.NoError(t, err)
	require.NoError(t, w.SetDelays(t.Context(), delays))
	out := &World{World: w, Dir: dir}
	var offers strings.Builder
	offers.WriteString("offers:\n")
	for _, p := range providers {
		require.NoError(t, w.AddProvider(t.Context(), p.Name, nil))
		require.NoError(t, os.WriteFile(out.credentials(p.Name), w.Kubeconfig(p.Name), 0o600))
		fmt.Fprintf(&offers, "- {name: %s, credentials: {kubeconfigFile: %s.kubeconfig}, %s}\n", p.Name, p.Name, p.Offer)
	}
	require.NoError(t, os.WriteFile(out.Offers(), []byte(offers.String()), 0o600))
	return out
}

// Offers returns the path of the offers file.
func (w *World) Offers() string { return filepath.Join(w.Dir, "offers.yaml") }

// Provider returns the provider with this name, in the form that the backend's methods use.
func (w *World) Provider(name string) fleet.Provider {
	return fleet.Provider{ID: name, Credentials: fleet.Credentials{KubeconfigFile: w.credentials(name)}}
}

func (w *World) credentials(name string) string { return filepath.Join(w.Dir, name+".kubeconfig") }
