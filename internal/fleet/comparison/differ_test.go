package comparison_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/comparison"
)

// A standby's hold that no group lists is unused. A standby is in use if its group lists it at this provider. If its
// peering is missing, this is reported.
func TestStandbyWithoutAGroupIsUnused(t *testing.T) {
	kept, other, gone := fleet.StandbyKey("g", "e", 1), fleet.StandbyKey("g", "e", 2), fleet.StandbyKey("g", "e", 3)
	p := fleet.ProviderSnapshot{ID: "milan", Phase: fleet.Established, Standby: map[string]fleet.HoldState{
		kept: fleet.HoldGranted, other: fleet.HoldGranted, gone: fleet.HoldGranted}}
	groups := []fleet.Snapshot{{Group: "g", Standby: []fleet.Standby{{Provider: "milan", Key: kept},
		{Provider: "turin", Key: other}}}}
	d := comparison.ProviderDiffers(p, groups, nobody, nil, []fleet.Provider{{ID: "milan"}})
	require.Equal(t, []string{other, gone}, d.Unused)
	require.False(t, d.Unpeered)
	d = comparison.ProviderDiffers(p, groups, nobody, nil, nil)
	require.True(t, d.Unpeered)
	require.Equal(t, 3, d.Rows())
}

// A round sends at most 500 rows of a kind to an entity, because the size of its message is limited.
func TestRowsOfAMessageAreBounded(t *testing.T) {
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
	d := comparison.ProviderDiffers(p, nil, nobody, found, []fleet.Provider{{ID: "milan"}})
	require.Len(t, d.Unheld, most)
	require.Len(t, d.Unused, most)
}

// A Ready instance matches its row when all its objects exist. A joining attempt belongs to its driver, so it does not
// count as a difference. Objects of a failed instance, and objects without a booking, count as a difference.
func TestDifferencesOfAGroup(t *testing.T) {
	whole := fleet.Found{Slice: true, Virtual: true, Node: true, Marked: true, Stamped: true, Ready: true,
		Attempt: fleet.Attempt{Group: "a", Instance: "a-t0-1", Number: 1}}
	row := fleet.InstanceView{Name: "a-t0-1", Attempt: 1, Phase: fleet.Ready}
	const agrees, differs, missing = "agrees", "differs", "missing"
	for name, c := range map[string]struct {
		row   func(*fleet.InstanceView)
		found func(*fleet.Found)
		want  string
	}{
		"as published":      {nil, nil, agrees},
		"no slice":          {nil, func(f *fleet.Found) { f.Slice = false }, differs},
		"no VirtualNode":    {nil, func(f *fleet.Found) { f.Virtual = false }, differs},
		"no Node":           {nil, func(f *fleet.Found) { f.Node = false }, differs},
		"no mark":           {nil, func(f *fleet.Found) { f.Marked = false }, differs},
		"no id":             {nil, func(f *fleet.Found) { f.Stamped = false }, differs},
		"on its way out":    {nil, func(f *fleet.Found) { f.Terminating = true }, differs},
		"it is not ready":   {nil, func(f *fleet.Found) { f.Ready = false }, differs},
		"it is ready again": {func(v *fleet.InstanceView) { v.NotReady = true }, nil, differs},
		"not ready, as published": {func(v *fleet.InstanceView) { v.NotReady = true },
			func(f *fleet.Found) { f.Ready = false }, agrees},
		"another attempt": {nil, func(f *fleet.Found) { f.Attempt.Number = 2 }, differs + missing},
		"another's":       {nil, func(f *fleet.Found) { f.Attempt.Group = "b" }, missing},
		"joins": {func(v *fleet.InstanceView) { v.Phase = fleet.Joining },
			func(f *fleet.Found) { f.Node = false }, agrees},
		"joins, with nothing yet": {func(v *fleet.InstanceView) { v.Phase = fleet.Joining },
			func(f *fleet.Found) { f.Attempt.Group = "b" }, agrees},
		"has failed": {func(v *fleet.InstanceView) { v.Phase = fleet.Failed }, nil, differs},
	} {
		t.Run(name, func(t *testing.T) {
			row, f := row, whole
			if c.row != nil {
				c.row(&row)
			}
			if c.found != nil {
				c.found(&f)
			}
			d := comparison.GroupDiffers(fleet.Snapshot{Group: "a", Instances: []fleet.InstanceView{row}}, []fleet.Found{f})
			got := ""
			if len(d.Found) > 0 {
				require.Equal(t, fleet.Founds{f}, d.Found)
				got = differs
			}
			if len(d.Missing) > 0 {
				require.Equal(t, []string{"a-t0-1"}, d.Missing)
				got += missing
			}
			if got == "" {
				got = agrees
			}
			require.Equal(t, c.want, got)
			require.Equal(t, f.Attempt.Group != "a", d.Empty, "nothing of the group exists")
		})
	}
}

// A hold is in use when objects exist for it, when a Ready instance is on this provider, or when the driver of an
// instance may still request it.
func TestDifferencesOfAProvider(t *testing.T) {
	const key = "lca-a-t0-1-1"
	booked := func(phase fleet.Phase, provider string, attempt int) []fleet.InstanceView {
		return []fleet.InstanceView{{Name: "a-t0-1", Phase: phase, Provider: provider, Attempt: attempt}}
	}
	found := func(provider string, terminating bool) []fleet.Found {
		return []fleet.Found{{Slice: true, Terminating: terminating, Attempt: fleet.Attempt{Group: "a", Instance: "a-t0-1",
			Number: 1, Provider: fleet.Provider{ID: provider}}}}
	}
	for name, c := range map[string]struct {
		held           bool
		rows           []fleet.InstanceView
		found          []fleet.Found
		unheld, unused bool
	}{
		"nothing":                                      {},
		"hold without an instance":                     {held: true, unused: true},
		"held, and made":                               {held: true, found: found("milan", false)},
		"held, and on its way out":                     {held: true, found: found("milan", true)},
		"made without a hold":                          {found: found("milan", false), unheld: true},
		"removed without a hold":                       {found: found("milan", true)},
		"made elsewhere":                               {found: found("turin", false)},
		"held, and made elsewhere":                     {held: true, found: found("turin", false), unused: true},
		"of a Ready instance":                          {held: true, rows: booked(fleet.Ready, "milan", 1)},
		"of its attempt before":                        {held: true, rows: booked(fleet.Ready, "milan", 2), unused: true},
		"of one that is elsewhere":                     {held: true, rows: booked(fleet.Ready, "turin", 1), unused: true},
		"of a Ready instance with an unknown provider": {held: true, rows: booked(fleet.Ready, "", 2)},
		"of one on its way":                            {held: true, rows: booked(fleet.Joining, "turin", 2)},
		"of one that has failed":                       {held: true, rows: booked(fleet.Failed, "milan", 1), unused: true},
		"of an instance that is being released":        {held: true, rows: booked(fleet.Draining, "milan", 1)},
	} {
		p := fleet.ProviderSnapshot{ID: "milan", Phase: fleet.Established}
		if c.held {
			p.Holds = []string{key}
		}
		d := comparison.ProviderDiffers(p, []fleet.Snapshot{{Group: "a", Instances: c.rows}}, nobody, c.found, milan)
		require.Equal(t, map[bool][]string{true: {key}}[c.unheld], d.Unheld, name)
		require.Equal(t, map[bool][]string{true: {key}}[c.unused], d.Unused, name)
	}
}

// A peering of a provider in the phase Absent is a leftover. When the peering of an established provider with a standby
// is missing, it must be established again.
func TestDifferencesOfPeerings(t *testing.T) {
	standby := map[string]fleet.HoldState{fleet.StandbyKey("g", "e", 1): fleet.HoldGranted}
	for _, row := range fleet.PeeringMachine {
		for _, peered := range []bool{true, false} {
			for _, held := range []map[string]fleet.HoldState{nil, standby} {
				peers := []fleet.Provider{{ID: "turin"}}
				if peered {
					peers = append(peers, fleet.Provider{ID: "milan"})
				}
				d := comparison.ProviderDiffers(fleet.ProviderSnapshot{ID: "milan", Phase: row.Phase, Standby: held},
					nil, nobody, nil,
					peers)
				require.Equal(t, peered && row.Phase == fleet.Absent, d.Remains, row.Phase)
				require.Equal(t, !peered && row.Phase == fleet.Established && held != nil, d.Unpeered, row.Phase)
			}
		}
	}
}

// A round could not read a group. Such a group looks like a group without instances, so the round reports no
// differences for its holds.
func TestHoldsOfAnUnreadGroupAreNotUnused(t *testing.T) {
	p := fleet.ProviderSnapshot{ID: "milan", Phase: fleet.Established, Holds: []string{"lca-a-b-t0-1-1", "lca-a-t0-1-1"},
		Standby: map[string]fleet.HoldState{"standby/a-b/t0-1": fleet.HoldGranted}}
	for unread, unused := range map[string][]string{
		"a-b": {"lca-a-t0-1-1"}, "a": {"lca-a-b-t0-1-1", "standby/a-b/t0-1"},
		"none": {"lca-a-b-t0-1-1", "lca-a-t0-1-1", "standby/a-b/t0-1"},
	} {
		d := comparison.ProviderDiffers(p, nil, func(group string) bool { return group == unread }, nil, nil)
		require.Equal(t, unused, d.Unused)
	}
}
