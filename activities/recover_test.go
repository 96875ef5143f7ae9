package activities_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// offering is a catalog that says what it is told to.
type offering struct {
	offers []fleet.Offer
	err    error
}

func (o offering) Offers(context.Context) ([]fleet.Offer, []discovery.Problem, error) {
	return o.offers, nil, o.err
}

// peered is a backend with one peering of ours and nothing else.
type peered struct{ backend.Backend }

func (peered) List(context.Context, string) ([]backend.Found, error) { return nil, nil }

func (peered) Peers(context.Context) ([]backend.Provider, error) {
	return []backend.Provider{{ID: "rome"}, {ID: "milan"}}, nil
}

// What is to become of a peering that nobody uses stands in the provider's offer alone.
func TestRecoveredProviderHasItsOffersPolicy(t *testing.T) {
	linger := int64(7)
	offers := []fleet.Offer{{Provider: "rome"}, {Provider: "milan", LingerSeconds: &linger, Unpeer: fleet.UnpeerNever}}
	for name, c := range map[string]struct {
		catalog offering
		want    fleet.UnpeerPolicy
	}{
		"offered":           {offering{offers: offers}, fleet.UnpeerNever},
		"not offered":       {offering{offers: offers[:1]}, ""},
		"catalog is broken": {offering{err: errors.New("no such file")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := &activities.Activities{Backend: peered{}, Catalog: c.catalog}
			var s testsuite.WorkflowTestSuite
			env := s.NewTestActivityEnvironment()
			env.RegisterActivity(a.RecoverProvider)
			value, err := env.ExecuteActivity(a.RecoverProvider, "milan")
			require.NoError(t, err)
			var got activities.RecoveredProvider
			require.NoError(t, value.Get(&got))
			require.Equal(t, "milan", got.Peering.ID)
			require.Equal(t, c.want, got.Unpeer)
			require.Equal(t, c.want != "", got.LingerSeconds != nil)
		})
	}
}

// holding are provider entities with holds, of which one cannot be read, and one has none of the group's.
type holding struct {
	activities.Holds
	read []string
}

func (h *holding) Listed(context.Context) ([]fleet.ProviderState, error) {
	mine := map[string]fleet.Hold{
		"standard-x-2-1": {State: fleet.HoldGranted}, "standard-x-9-1": {State: fleet.HoldGranted}, // released since
	}
	others := map[string]fleet.Hold{
		"standard-x-1-1": {State: fleet.HoldGranted}, "standard-x-3-1": {State: fleet.HoldReleased}, "other-x-4-1": {State: fleet.HoldGranted},
	}
	return []fleet.ProviderState{{ID: "milan", Holds: mine}, {ID: "oslo", Holds: others}, {ID: "rome", Holds: mine}}, nil
}

func (h *holding) Status(_ context.Context, provider string) (fleet.ProviderState, error) {
	h.read = append(h.read, provider)
	if provider == "milan" {
		return fleet.ProviderState{}, fleet.ErrUnavailable
	}
	holds := map[string]fleet.Hold{
		"standard-x-1-1": {State: fleet.HoldGranted}, "standard-x-2-1": {State: fleet.HoldWaiting}, "standard-x-3-1": {State: fleet.HoldReleased},
		"other-x-4-1": {State: fleet.HoldGranted},
	}
	return fleet.ProviderState{ID: provider, Offer: &fleet.Offer{Credentials: fleet.Credentials{KubeconfigFile: "rome"}}, Holds: holds}, nil
}

// one is a backend with one attempt of a group.
type one struct{ backend.Backend }

func (one) List(context.Context, string) ([]backend.Found, error) {
	return []backend.Found{{Attempt: backend.Attempt{Group: "standard", Instance: "standard-x-1", Number: 1}, Slice: true}}, nil
}

// A live hold exists as objects do: one that nobody has booked must be found. A provider that cannot be read hides nothing
// else, and those without such a hold, most of them, are not read at all.
func TestRecoveredGroupShowsHoldsWithoutObjects(t *testing.T) {
	env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	var holds holding
	a := &activities.Activities{Backend: one{}, Holds: &holds}
	env.RegisterActivity(a.RecoverGroup)
	value, err := env.ExecuteActivity(a.RecoverGroup, "standard")
	require.NoError(t, err)
	var found []backend.Found
	require.NoError(t, value.Get(&found))
	require.Equal(t, []string{"milan", "rome"}, holds.read)
	require.Len(t, found, 2)
	require.True(t, found[0].Slice)
	require.Equal(t, backend.Found{Attempt: backend.Attempt{
		Group: "standard", Instance: "standard-x-2", Number: 1,
		Provider: backend.Provider{ID: "rome", Credentials: fleet.Credentials{KubeconfigFile: "rome"}},
	}}, found[1])
}
