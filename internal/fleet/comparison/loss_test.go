package comparison_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/comparison"
)

// silentGroup has an instance on milan for each time, since when its Node is not ready; a minute of that loses it.
func silentGroup(notReadySince ...time.Time) []fleet.Snapshot {
	minute := fleet.Term{Duration: metav1.Duration{Duration: time.Minute}}
	g := fleet.Snapshot{Group: "a", Spec: &fleet.GroupSpec{InstanceSpec: fleet.InstanceSpec{ID: "a",
		Budgets: fleet.Budgets{Unready: &minute}}}}
	for n, since := range notReadySince {
		g.Instances = append(g.Instances, fleet.InstanceView{Name: fmt.Sprintf("a-t0-%d", n+1), Attempt: 1,
			Phase: fleet.Ready, Counts: true, Provider: "milan", NotReady: true, NotReadySince: since})
	}
	return []fleet.Snapshot{g}
}

func saw(at time.Time, access fleet.Access) comparison.Outlook {
	return comparison.Outlook{At: at, Evidence: []comparison.Evidence{{Provider: "milan", Access: access}}}
}

// A provider is silent since the last round that it answered, and for one round never for long enough.
func TestSilenceBeginsWithTheLastAnswer(t *testing.T) {
	start := time.Unix(2_000_000, 0)
	groups := silentGroup(start.Add(time.Second))
	answered := comparison.Judge(comparison.Outlook{}, saw(start, fleet.AccessGranted), groups, nil)
	first := comparison.Judge(answered.Now, saw(start.Add(62*time.Second), fleet.AccessSilent), groups, nil)
	require.Equal(t, start, first.Now.Of("milan").Since)
	require.Empty(t, first.Losses)
	second := comparison.Judge(first.Now, saw(start.Add(70*time.Second), fleet.AccessSilent), groups, nil)
	require.Len(t, second.Losses["a"], 1)
	require.Equal(t, start, second.Now.Of("milan").Since)
}

// A round says when another one is worth while: when most instances are lost before the next minute's, should what it
// saw last. Then they are.
func TestAnotherRoundWhenInstancesAreLostSoon(t *testing.T) {
	now := time.Unix(2_000_000, 0)
	const silent = fleet.AccessSilent
	seconds := func(before ...time.Duration) (out []time.Duration) {
		for _, n := range before {
			out = append(out, n*time.Second)
		}
		return out
	}
	for name, c := range map[string]struct {
		notReady  []time.Duration // before now
		access    fleet.Access
		sentenced time.Duration // before now
		due       time.Duration // after now; zero for none
		lost      int
	}{
		"all at once":                    {seconds(40), silent, time.Hour, 20 * time.Second, 1},
		"as early as any":                {seconds(59), silent, time.Hour, 10 * time.Second, 1},
		"as late as may be":              {seconds(32), silent, time.Hour, 28 * time.Second, 1},
		"the next minute's is soon":      {seconds(31), silent, time.Hour, 0, 0},
		"this round lost it":             {seconds(60), silent, time.Hour, 0, 0},
		"it answers":                     {seconds(40), fleet.AccessGranted, time.Hour, 0, 0},
		"a third, when a third is ready": {seconds(44, 42, 40, 0), silent, time.Hour, 18 * time.Second, 2},
		"a minute after the last third":  {seconds(120), silent, 45 * time.Second, 10 * time.Second, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var since []time.Time
			for _, before := range c.notReady {
				since = append(since, now.Add(-before))
			}
			groups := silentGroup(since...)
			last := saw(now.Add(-time.Minute), c.access)
			last.Evidence[0].Since, last.Sentenced = now.Add(-time.Hour), now.Add(-c.sentenced)
			j := comparison.Judge(last, saw(now, c.access), groups, nil)
			if c.due == 0 {
				require.Zero(t, j.Due)
				return
			}
			require.Empty(t, j.Losses)
			require.Equal(t, now.Add(c.due), j.Due)
			require.Len(t, comparison.Judge(j.Now, saw(j.Due, c.access), groups, nil).Losses["a"], c.lost)
		})
	}
}
