package operate

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// running has an entry for each provider: nil if the provider's workflow runs, or the error with which a read of this
// workflow fails.
type running map[string]error

func (r running) Status(_ context.Context, provider string) (fleet.ProviderSnapshot, error) {
	err, known := r[provider]
	if !known {
		err = fmt.Errorf("provider/%s %w: %w", provider, fleet.ErrNotRunning, fleet.ErrUnavailable)
	}
	return fleet.ProviderSnapshot{ID: provider}, err
}

// An operator names a provider by its id or by its offer. An unknown name is refused unless the operator sets
// --unknown: the cordon of a misspelt name would protect nothing.
func TestUnknownProviderNameIsRefused(t *testing.T) {
	offers := []fleet.Offer{{Name: "cheap", Provider: "milan"}, {Name: "new"}}
	for name, c := range map[string]struct {
		named   string
		offers  []fleet.Offer
		unknown bool
		want    string
		why     string
	}{
		"its id":              {named: "milan", offers: offers, want: "milan"},
		"its offer":           {named: "cheap", offers: offers, want: "milan"},
		"an unresolved offer": {named: "new", offers: offers, want: "new"},
		"a provider in use":   {named: "rome", offers: offers, want: "rome"},
		"no offers are read":  {named: "rome", want: "rome"},
		"a name that is wrong": {named: "milna", offers: offers,
			why: "offers: cheap (milan), new (provider not known yet): --unknown"},
		"a name without offers": {named: "milna", why: "the offers could not be read"},
		"an operator insists":   {named: "milna", offers: offers, unknown: true, want: "milna"},
		"Temporal is away":      {named: "paris", offers: offers, why: "read provider paris: no Temporal"},
	} {
		t.Run(name, func(t *testing.T) {
			entities := running{"rome": nil, "paris": fmt.Errorf("no Temporal")}
			got, err := providerOf(t.Context(), c.named, c.offers, entities, c.unknown)
			require.Equal(t, c.want, got)
			if c.why == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.why)
		})
	}
	many := make([]fleet.Offer, 100)
	_, err := providerOf(t.Context(), "milna", many, running{}, false)
	require.ErrorContains(t, err, "and 90 more")
	require.Less(t, len(err.Error()), 600)
}
