package comparison_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/comparison"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/provider"
)

// A fault of our own cluster is told at once, holds up nobody but where a namespace is at stake, and is over with the
// peering, or when a round says so.
func TestFaultsOfOurOwn(t *testing.T) {
	now := time.Unix(2_000_000, 0)
	p := provider.New("milan", now)
	p.Step(provider.Input{Result: &fleet.Result{ID: p.Commands.Last, Outcome: fleet.OutcomeDone}}, now)
	p.Step(provider.Input{Requests: []fleet.HoldRequest{{Kind: fleet.HoldNoRoom, Message: "no CPU"}}}, now)
	standing := p.Snapshot(now).Standing
	require.Equal(t, fleet.ConditionNoRoomForGateway, standing.Condition())
	require.Equal(t, "no CPU", standing.Message)
	require.False(t, standing.Closes())
	require.Contains(t, fleet.Conditions, standing.Condition())

	seen := func(at time.Time, f fleet.Fault) comparison.Outlook {
		return comparison.Outlook{At: at, Evidence: []comparison.Evidence{{
			Provider: "milan", Access: fleet.AccessGranted, Fault: f}}}
	}
	divided := fleet.Fault{Condition: fleet.ConditionNamespaceDivided, Message: "by color"}
	j := comparison.Judge(comparison.Outlook{}, seen(now, divided), nil, nil)
	standing, changed := j.Standing(p.Snapshot(now))
	require.True(t, changed, "the first round that sees it tells it")
	require.Equal(t, fleet.ConditionNamespaceDivided, standing.Condition())
	require.True(t, standing.Closes())
	require.Contains(t, fleet.Conditions, standing.Condition())

	j = comparison.Judge(j.Now, seen(now.Add(time.Minute), fleet.Fault{}), nil, nil)
	standing, changed = j.Standing(p.Snapshot(now))
	require.True(t, changed)
	require.True(t, standing.Good())
}

// Lost is only what is Ready and wanted: what is on its way, or on its way out, is its driver's to end.
func TestOnlySettledInstancesAreLost(t *testing.T) {
	now := time.Unix(2_000_000, 0)
	row := func(name string, phase fleet.Phase, counts bool) fleet.InstanceView {
		return fleet.InstanceView{Name: name, Phase: phase, Counts: counts, Attempt: 1, Provider: "milan"}
	}
	groups := []fleet.Snapshot{{Group: "a", Spec: &fleet.GroupSpec{ID: "a"}, Instances: []fleet.InstanceView{
		row("a-t0-1", fleet.Joining, true), row("a-t0-2", fleet.Ready, false), row("a-t0-3", fleet.Ready, true)}}}
	providers := []fleet.ProviderSnapshot{{ID: "milan", Phase: fleet.Established}}
	removed := func(at time.Time) comparison.Outlook {
		return comparison.Outlook{At: at, Evidence: []comparison.Evidence{{
			Provider: "milan", Access: fleet.AccessGranted, Tenant: fleet.RefusingRemoved}}}
	}
	first := comparison.Judge(comparison.Outlook{}, removed(now), groups, providers)
	require.Empty(t, first.Losses, "one round is none")
	second := comparison.Judge(first.Now, removed(now.Add(time.Minute)), groups, providers)
	require.Len(t, second.Losses["a"], 1)
	require.Equal(t, "a-t0-3", second.Losses["a"][0].Instance)
}

// A provider that is silent in as many rounds as budgets.unready has minutes is silent for long enough, though the last
// of them begins a moment too early. A Node's own time is exact.
func TestRoundsAreNotExact(t *testing.T) {
	start := time.Unix(2_000_000, 0)
	minute := fleet.Term{Duration: metav1.Duration{Duration: time.Minute}}
	groups := func(notReady time.Time) []fleet.Snapshot {
		spec := &fleet.GroupSpec{ID: "a", Budgets: fleet.Budgets{Unready: &minute}}
		return []fleet.Snapshot{{Group: "a", Spec: spec, Instances: []fleet.InstanceView{{Name: "a-t0-1", Attempt: 1,
			Phase: fleet.Ready, Counts: true, Provider: "milan", NotReady: true, NotReadySince: notReady}}}}
	}
	for name, c := range map[string]struct {
		after, notReady time.Duration
		lost            int
	}{
		"a moment too early":              {time.Minute - 2*time.Millisecond, -time.Minute, 1},
		"by hand, much too early":         {40 * time.Second, -time.Minute, 0},
		"the Node has a second to go yet": {time.Minute, time.Second, 0},
	} {
		silent := func(at time.Time) comparison.Outlook {
			return comparison.Outlook{At: at,
				Evidence: []comparison.Evidence{{Provider: "milan", Access: fleet.AccessSilent}}}
		}
		rows := groups(start.Add(c.notReady))
		first := comparison.Judge(comparison.Outlook{}, silent(start), rows, nil)
		require.Empty(t, first.Losses, name)
		second := comparison.Judge(first.Now, silent(start.Add(c.after)), rows, nil)
		require.Len(t, second.Losses["a"], c.lost, name)
	}
}
