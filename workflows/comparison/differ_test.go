package comparison_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/comparison"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// A hold that no group lists is unused, one that it lists of this provider is not; a peering that is gone is noticed.
func TestProviderDiffersByStandbys(t *testing.T) {
	kept, other, gone := fleet.StandbyKey("g", "e", 1), fleet.StandbyKey("g", "e", 2), fleet.StandbyKey("g", "e", 3)
	p := fleet.ProviderSnapshot{ID: "milan", Phase: fleet.Established, Standby: map[string]fleet.HoldState{
		kept: fleet.HoldGranted, other: fleet.HoldGranted, gone: fleet.HoldGranted}}
	groups := []fleet.Snapshot{{Group: "g", Standby: []fleet.Standby{{Provider: "milan", Key: kept},
		{Provider: "turin", Key: other}}}}
	d := comparison.ProviderDiffers(p, groups, nil, []fleet.Provider{{ID: "milan"}})
	require.Equal(t, []string{other, gone}, d.Unused)
	require.False(t, d.Unpeered)
	d = comparison.ProviderDiffers(p, groups, nil, nil)
	require.True(t, d.Unpeered)
	require.Equal(t, 3, d.Rows())
}
