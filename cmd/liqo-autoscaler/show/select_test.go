package show_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/show"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli/output"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
)

// many returns 200 groups. Three groups are active: one grows, one has a failed instance, and one has a node that is
// not ready.
func many() show.Status {
	var all []fleet.Snapshot
	for n := range 200 {
		name := fmt.Sprintf("team-%d", n)
		s := fleet.Snapshot{Group: name, Epoch: fleet.NewEpoch(ago(time.Duration(n) * time.Hour)), Revision: 1, Max: 4,
			Target: 1, At: now, Instances: []fleet.InstanceView{{Name: name + "-a-1", Phase: fleet.Ready, Counts: true,
				Provider: fmt.Sprintf("p-%d", n%4), Attempt: 1, Since: ago(time.Duration(n) * time.Minute),
				Price: money.Of(float64(n % 7))}}}
		all = append(all, s)
	}
	all[150].Instances[0].Phase = fleet.Peering
	all[170].Instances[0].Phase = fleet.Failed
	all[170].Instances[0].Failure = fleet.NewFailure(fleet.CodeNoCapacity, "", "", "nothing fits")
	all[190].Instances[0].NotReady = true
	return show.StatusOf(nil, all...)
}

// TestPhasesAreThoseOfTheMachine checks that --phase accepts each phase of the machine, and NotReady.
func TestPhasesAreThoseOfTheMachine(t *testing.T) {
	want := []string{show.NotReady}
	for _, row := range fleet.Machine {
		want = append(want, string(row.Phase))
	}
	require.ElementsMatch(t, want, show.Phases)
}

// names returns the names of the first groups and of the first instances of the status, at most the given number of
// each.
func names(s show.Status, most int) (groups, instances []string) {
	for _, g := range s.Groups[:min(most, len(s.Groups))] {
		groups = append(groups, g.Name)
	}
	for _, i := range s.Instances[:min(most, len(s.Instances))] {
		instances = append(instances, i.Name)
	}
	return groups, instances
}

// For a hub with many groups, status lists the active groups first.
func TestActiveGroupsComeFirst(t *testing.T) {
	for order, want := range map[string][][]string{
		"activity": {{"team-170", "team-190", "team-150", "team-0"}, {"team-170-a-1", "team-190-a-1", "team-150-a-1",
			"team-0-a-1"}},
		"name": {{"team-0", "team-1", "team-2", "team-3"}, {"team-0-a-1", "team-1-a-1", "team-2-a-1", "team-3-a-1"}},
		"phase": {{"team-170", "team-190", "team-150", "team-0"}, {"team-150-a-1", "team-0-a-1", "team-1-a-1",
			"team-2-a-1"}},
		"age": {{"team-199", "team-198", "team-197", "team-196"}, {"team-199-a-1", "team-198-a-1", "team-197-a-1",
			"team-196-a-1"}},
		"provider": {{"team-0", "team-1", "team-2", "team-3"}, {"team-0-a-1", "team-4-a-1", "team-8-a-1", "team-12-a-1"}},
		"cost":     {{"team-0", "team-1", "team-2", "team-3"}, {"team-6-a-1", "team-13-a-1", "team-20-a-1", "team-27-a-1"}},
	} {
		require.NoError(t, show.CheckOrder(order))
		groups, instances := names(many().Sorted(order), 4)
		require.Equal(t, want[0], groups, order)
		require.Equal(t, want[1], instances, order)
	}
	require.EqualError(t, show.CheckOrder("size"), `--sort "size": use activity, name, phase, age, provider, cost`)
	require.Equal(t, "name", show.OrderOf("", "json"))
	require.Equal(t, "activity", show.OrderOf("", "table"))
	require.Equal(t, "cost", show.OrderOf("cost", "json"))
	require.Equal(t, "standard", costly().Sorted("cost").Groups[0].Name)
}

// An operator selects groups and providers by patterns, and instances by their phase.
func TestSelectionByPatternAndPhase(t *testing.T) {
	for _, c := range []struct {
		sel               show.Selection
		groups, instances int
	}{
		{show.Selection{}, 200, 200},
		{show.Selection{Groups: []string{"team-1?"}}, 10, 10},
		{show.Selection{Groups: []string{"team-1", "team-19*"}}, 12, 12},
		{show.Selection{Groups: []string{"nope"}}, 0, 0},
		{show.Selection{Providers: []string{"p-[01]"}}, 100, 100},
		{show.Selection{Phases: []string{"Failed", "NotReady"}}, 2, 2},
		{show.Selection{Phases: []string{"Ready"}}, 197, 197},
		{show.Selection{Phases: []string{"Failed"}, Providers: []string{"p-2"}}, 1, 1},
		{show.Selection{Phases: []string{"Failed"}, Providers: []string{"p-1"}}, 0, 0},
	} {
		s := many().Of(c.sel)
		require.Len(t, s.Groups, c.groups, "%+v", c.sel)
		require.Len(t, s.Instances, c.instances, "%+v", c.sel)
	}
	var out bytes.Buffer
	none := many().Of(show.Selection{Phases: []string{"Joining"}})
	require.NoError(t, none.Table(&out, output.Style{Now: now}))
	require.Equal(t, "No node group has such an instance.\n", out.String())

	s := show.StatusOf(nil, snapshots()...).With([]fleet.ProviderSnapshot{unreachable()}).Of(show.Selection{
		Providers: []string{"turin"}})
	require.Empty(t, s.Conditions, "they are of milan")
	require.Len(t, s.Standby, 1)
	require.Len(t, s.Groups, 2, "gpu-10 keeps a peering with turin")
}

func TestWrongSelectionsAreRefused(t *testing.T) {
	sel := show.Selection{Phases: []string{"failed", "NOTREADY"}}
	require.NoError(t, sel.Check())
	require.Equal(t, []string{"Failed", "NotReady"}, sel.Phases)
	require.ErrorContains(t, (&show.Selection{Phases: []string{"broken"}}).Check(), `--phase "broken": use Pending, `)
	require.ErrorContains(t, (&show.Selection{Groups: []string{"a["}}).Check(), `--group "a[": syntax error`)
	require.ErrorContains(t, (&show.Selection{Providers: []string{"[-]"}}).Check(), `--provider "[-]": syntax error`)
}

// The lines of a watch contain dates, because a watch may run for days. On a narrow terminal the lines are shorter.
func TestChangesHaveDates(t *testing.T) {
	c := show.Changes(fleet.Snapshot{}, snapshots()[0], alone)[5]
	c.At = time.Date(2026, 11, 20, 12, 0, 0, 0, time.Local)
	printed := func(style output.Style) string {
		var out bytes.Buffer
		require.NoError(t, c.Row(&out, style))
		return out.String()
	}
	require.Regexp(t, `^2026-11-20 12:00:00  standard-\S+-6 +Failed +6  turin +2  Unreachable: .*the network\n$`,
		printed(output.Style{}))
	require.Regexp(t, `^11-20 12:00:00  standard-\S+-6 +Failed turin\n    Unreachable: .*…\n$`, printed(output.Style{Width: 60}))
}

// A group can only shrink. Its max equals its target size in status, as in the answer to Cluster Autoscaler.
func TestMaxOfARetiredGroupIsItsTarget(t *testing.T) {
	s := snapshots()[0]
	s.Notice = fleet.GroupNotice{Name: fleet.BlockRetired, Message: "it only shrinks"}
	require.Equal(t, 6, show.StatusOf(nil, s).Groups[0].Max)
}
