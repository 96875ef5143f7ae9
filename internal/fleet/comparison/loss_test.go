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

// silentGroup returns a group with one instance on milan for each given time. The Node of the instance became not
// ready at this time. Budgets.Unready is one minute.
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

// A provider counts as silent since the last round in which it answered. A loss nevertheless needs two silent rounds.
func TestSilenceBeginsWithTheLastAnswer(t *testing.T) {
	start := time.Unix(2_000_000, 0)
	groups := silentGroup(start.Add(time.Second))
	answered := comparison.Judge(comparison.Outlook{}, saw(start, fleet.AccessGranted), groups, nil, nobody)
	first := comparison.Judge(answered.Now, saw(start.Add(62*time.Second), fleet.AccessSilent), groups, nil, nobody)
	require.Equal(t, start, first.Now.Of("milan").Since)
	require.Empty(t, first.Losses)
	second := comparison.Judge(first.Now, saw(start.Add(70*time.Second), fleet.AccessSilent), groups, nil, nobody)
	require.Len(t, second.Losses["a"], 1)
	require.Equal(t, start, second.Now.Of("milan").Since)
}

// nobody returns false for every provider. As the parameter unread of Judge it means that the round has read all
// providers.
func nobody(string) bool { return false }

// An instance may be lost while its Node is not ready and its provider or the network does not answer. During this
// time the next round starts soon.
func TestNextRoundStartsSoonWhileAnInstanceMayBeLost(t *testing.T) {
	now := time.Unix(2_000_000, 0)
	granted := saw(now, fleet.AccessGranted)
	for name, c := range map[string]struct {
		change func(*comparison.Outlook, *fleet.InstanceView)
		soon   bool
	}{
		"silent":                  {func(*comparison.Outlook, *fleet.InstanceView) {}, true},
		"its Node is ready":       {func(_ *comparison.Outlook, v *fleet.InstanceView) { v.NotReady = false }, false},
		"it is on its way out":    {func(_ *comparison.Outlook, v *fleet.InstanceView) { v.Counts = false }, false},
		"it answers":              {func(o *comparison.Outlook, _ *fleet.InstanceView) { *o = granted }, false},
		"no provider answers":     {func(o *comparison.Outlook, _ *fleet.InstanceView) { o.Isolated = true }, false},
		"the network is broken":   {func(o *comparison.Outlook, _ *fleet.InstanceView) { *o = cut(now, false) }, true},
		"our gateway is at fault": {func(o *comparison.Outlook, _ *fleet.InstanceView) { *o = cut(now, true) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			groups, seen := silentGroup(now), saw(now, fleet.AccessSilent)
			c.change(&seen, &groups[0].Instances[0])
			require.Equal(t, c.soon, comparison.Judge(comparison.Outlook{}, seen, groups, nil, nobody).Soon)
		})
	}
}

func cut(at time.Time, here bool) comparison.Outlook {
	o := saw(at, fleet.AccessGranted)
	o.Evidence[0].Network, o.Evidence[0].Here = "Error", here
	return o
}

// A group refuses a loss when, by its own clock, the Node has been not ready for less than budgets.unready. A refused
// loss does not delay the next loss. The next loss is delayed only by a loss that took effect or may have taken
// effect.
func TestRefusedLossDoesNotDelayTheNext(t *testing.T) {
	start := time.Unix(2_000_000, 0)
	for name, c := range map[string]struct {
		change func([]fleet.Snapshot) []fleet.Snapshot
		lost   int
	}{
		"refused": {func(g []fleet.Snapshot) []fleet.Snapshot { return g }, 1},
		"lost": {func(g []fleet.Snapshot) []fleet.Snapshot {
			g[0].Instances[0].Counts, g[0].Instances[0].Phase = false, fleet.Draining
			return g
		}, 0},
		"not read": {func(g []fleet.Snapshot) []fleet.Snapshot {
			other := silentGroup(start)
			other[0].Group, other[0].Instances[0].Name = "b", "b-t0-1"
			return other
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			last := comparison.Judge(comparison.Outlook{}, saw(start, fleet.AccessSilent), silentGroup(start), nil, nobody).Now
			at := func(after time.Duration) comparison.Outlook { return saw(start.Add(after), fleet.AccessSilent) }
			first := comparison.Judge(last, at(time.Minute), silentGroup(start, start, start), nil, nobody)
			require.Len(t, first.Losses["a"], 1)
			next := comparison.Judge(first.Now, at(80*time.Second), c.change(silentGroup(start, start, start)), nil, nobody)
			require.Len(t, next.Losses["a"], c.lost)
			require.Empty(t, next.Losses["b"])
		})
	}
}

// A round could not read a provider. The evidence of the earlier round stays, so the provider's silence continues.
// But this old evidence alone causes no loss.
func TestEvidenceOfAnUnreadProviderStays(t *testing.T) {
	start := time.Unix(2_000_000, 0)
	unread := func(string) bool { return true }
	var last comparison.Outlook
	for n := range 6 {
		at := start.Add(time.Duration(n) * time.Minute)
		if n%3 == 2 {
			j := comparison.Judge(last, comparison.Outlook{At: at}, silentGroup(start), nil, unread)
			require.Empty(t, j.Losses)
			_, changed := j.Standing(fleet.ProviderSnapshot{ID: "milan"})
			require.False(t, changed)
			last = j.Now
		} else {
			last = comparison.Judge(last, saw(at, fleet.AccessSilent), silentGroup(start), nil, nobody).Now
		}
		require.Equal(t, start, last.Of("milan").Since, n)
	}
	require.Empty(t, comparison.Judge(last, comparison.Outlook{At: start}, nil, nil, nobody).Now.Evidence)
}

// A process loads evidence that another process has saved. The times are loaded as ages, so that they move with the
// clock of the loading process.
func TestSavedEvidenceIsLoadedAsAges(t *testing.T) {
	at := time.Unix(2_000_000, 0)
	all := func(at time.Time) comparison.Outlook {
		return comparison.Outlook{At: at, IsolatedSince: at, IsolatedUntil: at, Sentenced: at,
			Evidence: []comparison.Evidence{{Since: at, Broken: at, HeardAt: []time.Time{at}}, {}}}
	}
	first := all(at)
	require.Equal(t, all(at.Add(time.Hour)), first.Later(time.Hour))
	require.Equal(t, all(at), first)
	require.Zero(t, comparison.Outlook{}.Later(time.Hour).At)
	sweep := func(at time.Time) comparison.Sweep {
		return comparison.Sweep{At: at, EmptySince: &at, Next: "p", Orphans: []fleet.Orphan{{Since: at}}}
	}
	before := sweep(at)
	require.Equal(t, sweep(at.Add(time.Hour)), before.Later(time.Hour))
	require.Equal(t, sweep(at), before)
}
