package fleet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// CA calls DeleteNodes with an instance whose Node keeps volumes. The group refuses the whole call and books nothing.
// When the observer no longer keeps the Node, the instance can be released. A round that could not read the volumes
// changes nothing.
func TestInstanceThatKeepsVolumesIsNotReleased(t *testing.T) {
	now := t0
	l, found := recoveredLedger(t, 2, now)
	configured := &fleet.GroupSpec{InstanceSpec: fleet.InstanceSpec{ID: "a"}, Max: 10}
	require.NoError(t, l.Operate(fleet.Configure, fleet.Request{Spec: configured}, now))
	first, second := found[0].Attempt.Instance, found[1].Attempt.Instance
	round := func(keeps *[]string) {
		now = now.Add(time.Minute)
		next := fleet.RoundID{Term: 1, Number: l.Round.Last.Number + 1}
		l.Step(fleet.GroupInput{Differences: &fleet.Differences{Round: next, Revision: l.Revision, Keeps: keeps}}, now)
	}
	kept := func() (names []string) {
		for _, v := range l.Snapshot(now).Instances {
			if v.Kept {
				names = append(names, v.Name)
			}
		}
		return names
	}
	before := l.Revision
	round(&[]string{first})
	require.Equal(t, []string{first}, kept())
	require.Greater(t, l.Revision, before, "it is published")
	round(nil)
	require.Equal(t, []string{first}, kept())

	err := operate(l, fleet.Release, 0, first, second)
	require.True(t, fleet.IsRefused(err, fleet.RefusedPrecondition), "%v", err)
	require.ErrorContains(t, err, "instance "+first+" keeps the volumes on provider milan")
	require.Equal(t, 2, l.Target(), "nothing is booked")
	require.NoError(t, operate(l, fleet.Release, 0, second))
	require.Equal(t, 1, l.Target())

	round(&[]string{})
	require.Empty(t, kept())
	require.NoError(t, operate(l, fleet.Release, 0, first))
	require.Equal(t, 0, l.Target())
}
