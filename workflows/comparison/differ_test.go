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

// An entity is told at most 500 rows of a kind in one round: what it gets must fit into a message.
func TestARoundTellsSoManyRowsAtMost(t *testing.T) {
	const most, more, epoch = 500, 503, "e"
	p := fleet.ProviderSnapshot{ID: "milan", Phase: fleet.Established, Standby: map[string]fleet.HoldState{}}
	var lost, strays fleet.Snapshot
	lost.Group, strays.Group = "lost", "strays"
	var found []fleet.Found
	for n := range more {
		lost.Instances = append(lost.Instances, fleet.InstanceView{
			Name: fleet.InstanceName("lost", epoch, n), Phase: fleet.Ready, Attempt: 1})
		stray := fleet.Attempt{Group: "strays", Number: 1, Instance: fleet.InstanceName("strays", epoch, n),
			Provider: fleet.Provider{ID: "milan"}}
		found = append(found, fleet.Found{Attempt: stray, Slice: true})
		p.Standby[fleet.StandbyKey("g", epoch, n)] = fleet.HoldGranted
	}
	require.Len(t, comparison.GroupDiffers(lost, found).Missing, most)
	require.Len(t, comparison.GroupDiffers(strays, found).Found, most)
	d := comparison.ProviderDiffers(p, nil, found, []fleet.Provider{{ID: "milan"}})
	require.Len(t, d.Unheld, most)
	require.Len(t, d.Unused, most)
}
