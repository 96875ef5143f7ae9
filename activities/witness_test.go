package activities_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Answers reports whether any other cluster answers. If none does, this cluster is cut off.
func TestWitnessFindsAnAnsweringCluster(t *testing.T) {
	down := errors.New("no answer")
	offer := func(id string) fleet.Offer {
		return fleet.Offer{Provider: id, Credentials: fleet.Credentials{KubeconfigFile: id}}
	}
	peer := fleet.Provider{ID: "rome", Credentials: fleet.Credentials{KubeconfigFile: "rome"}}
	up := func(context.Context) error { return nil }
	for name, c := range map[string]struct {
		offers  []fleet.Offer
		peers   []fleet.Provider
		silent  []string
		answers []string // clusters that answer, by credentials
		broken  error    // error of the catalog
		probe   func(context.Context) error
		want    bool
	}{
		"another offer answers": {offers: []fleet.Offer{offer("milan"), offer("turin")}, answers: []string{"turin"},
			want: true},
		"another peer answers":          {peers: []fleet.Provider{peer}, answers: []string{"rome"}, want: true},
		"no cluster answers":            {offers: []fleet.Offer{offer("turin")}, peers: []fleet.Provider{peer}},
		"only the probe answers":        {offers: []fleet.Offer{offer("turin")}, probe: up},
		"the only one":                  {offers: []fleet.Offer{offer("milan")}, answers: []string{"milan"}},
		"the only one, probe answers":   {offers: []fleet.Offer{offer("milan")}, probe: up, want: true},
		"the only one, probe is silent": {probe: func(context.Context) error { return down }},
		"two are silent, probe answers": {silent: []string{"milan", "turin"}, probe: up},
		"no catalog, a peer answers":    {broken: down, peers: []fleet.Provider{peer}, answers: []string{"rome"}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			if c.silent == nil {
				c.silent = []string{"milan"}
			}
			w := activities.Witness{Backend: &world{peers: c.peers, answers: c.answers}, Probe: c.probe,
				Catalog: offering{offers: c.offers, err: c.broken}}
			got, _, err := w.Answers(t.Context(), c.silent)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

// The peerings cannot be listed. Answers fails, because it does not know which clusters to contact.
func TestWitnessFailsWithoutAListOfPeerings(t *testing.T) {
	w := activities.Witness{Backend: &world{err: errors.New("no answer")}, Catalog: offering{}}
	_, _, err := w.Answers(t.Context(), []string{"milan"})
	require.ErrorContains(t, err, "no answer")
}
