package fleet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/choice"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// A standby's hold is none of a node's in what is published: it takes no place of an offer.
func TestStandbyTakesNoPlace(t *testing.T) {
	now := time.Now()
	p := fleet.NewProviderState("milan", now)
	offer := &fleet.Offer{Name: "m", Provider: "milan", Lendable: lendable(5), MaxNodes: 1}
	key := fleet.StandbyKey("g", "e", 1)
	acquire := func(key string) {
		p.Step(fleet.ProviderInput{Requests: []fleet.HoldRequest{{Kind: fleet.HoldAcquire, Key: key, Offer: offer}}}, now)
	}
	acquire(key)
	s := p.Snapshot(now)
	require.Empty(t, s.Holds)
	require.Equal(t, map[string]fleet.HoldState{key: fleet.HoldWaiting}, s.Standby)
	require.Equal(t, 0, choice.CandidateOf(*offer, s).Nodes)
	acquire("g-e-1-1")
	require.Equal(t, []string{"g-e-1-1"}, p.Snapshot(now).Holds)
}

// A hold that no group lists is unused, one that it lists of this provider is not; a peering that is gone is noticed.
func TestProviderDiffersByStandbys(t *testing.T) {
	kept, other, gone := fleet.StandbyKey("g", "e", 1), fleet.StandbyKey("g", "e", 2), fleet.StandbyKey("g", "e", 3)
	p := fleet.ProviderSnapshot{ID: "milan", Phase: fleet.Established, Standby: map[string]fleet.HoldState{
		kept: fleet.HoldGranted, other: fleet.HoldGranted, gone: fleet.HoldGranted}}
	groups := []fleet.Snapshot{{Group: "g", Standby: []fleet.Standby{{Provider: "milan", Key: kept},
		{Provider: "turin", Key: other}}}}
	d := fleet.ProviderDiffers(p, groups, nil, []fleet.Provider{{ID: "milan"}})
	require.Equal(t, []string{other, gone}, d.Unused)
	require.False(t, d.Unpeered)
	d = fleet.ProviderDiffers(p, groups, nil, nil)
	require.True(t, d.Unpeered)
	require.Equal(t, 3, d.Rows())
}
