package operate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/show"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// publishedAs returns the n-th snapshot of the group "standard", which has one instance.
func publishedAs(n int64, phase fleet.Phase) fleet.Snapshot {
	return fleet.Snapshot{Group: "standard", Epoch: "toozs0", Revision: n, Max: 4, Target: 1,
		At: time.Date(2026, 11, 20, 12, 0, int(n), 0, time.UTC), Instances: []fleet.InstanceView{
			{Name: "standard-toozs0-1", Phase: phase, Counts: true, Attempt: 1, Provider: "milan"}}}
}

// A watch prints each change. If Temporal becomes unreachable, the watch prints one line, and it prints another line
// when Temporal is reachable again.
func TestWatchSurvivesAnOutage(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	var out, errOut testkit.Buffer
	w := &watcher{snapshots: make(chan fleet.Snapshot), results: make(chan result), last: map[string]fleet.Snapshot{}}
	done := make(chan error, 1)
	go func() { done <- w.printChanges(ctx, stream{output: "table", out: &out, errOut: &errOut}) }()
	away := errors.New("list workflows: unavailable")
	w.snapshots <- publishedAs(1, fleet.Peering)
	w.results <- result{err: away}
	w.results <- result{"standard", errors.New("watch standard: unavailable")}
	w.results <- result{err: away}
	w.results <- result{}
	w.snapshots <- publishedAs(1, fleet.Peering) // equals the previous snapshot
	w.snapshots <- publishedAs(2, fleet.Ready)
	stop()
	require.NoError(t, <-done)
	require.Equal(t, "error: list workflows: unavailable (trying again)\nthe node groups can be read again\n",
		errOut.String())
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 2, "%s", &out)
	require.Contains(t, lines[0], "Peering")
	require.Contains(t, lines[1], "Ready")
}

// The first read of a watch fails. If nothing could be read, the watch ends with the error, and does not report an
// empty hub. If a part could be read, or a group refuses the read because it is rebuilding its state, the watch
// continues.
func TestWatchSurvivesAFailedFirstRead(t *testing.T) {
	begin := func(r reading, err error) (out, errOut string, failed error) {
		var o, e testkit.Buffer
		failed = stream{output: "table", out: &o, errOut: &e}.printFirst(statusFlags{output: "table"}, r, err)
		return o.String(), e.String(), failed
	}
	away := errors.New("read standard: unavailable")
	out, errOut, err := begin(reading{}, away)
	require.ErrorIs(t, err, away)
	require.Empty(t, out+errOut)

	one := publishedAs(1, fleet.Ready)
	some := reading{Status: show.StatusOf(nil, one), snapshots: []fleet.Snapshot{one}}
	out, errOut, err = begin(some, away)
	require.NoError(t, err)
	require.Equal(t, "error: read standard: unavailable (trying again)\n", errOut)
	require.Contains(t, out, "standard-toozs0-1")

	out, _, err = begin(reading{}, fleet.Refuse(fleet.RefusedNotInitialised, "standard rebuilds its state"))
	require.NoError(t, err)
	require.Regexp(t, `^TIME +INSTANCE`, out)

	out, errOut, err = begin(reading{}, nil)
	require.NoError(t, err)
	require.Contains(t, out, "No node groups run.")
	require.Empty(t, errOut)
}

// A watch compares spending limits with the same costs as `status` does: the costs of all groups of the account,
// including the ended groups.
func TestWatchEvaluatesTheWholeAccount(t *testing.T) {
	spec := func(id string) *fleet.GroupSpec {
		return &fleet.GroupSpec{InstanceSpec: fleet.InstanceSpec{ID: id, Currency: "USD"},
			Spending: &money.Spending{Account: "team"}}
	}
	of := func(name string, month float64) fleet.Snapshot {
		s := publishedAs(1, fleet.Ready)
		s.Group, s.Spec = name, spec(name)
		s.Cost = money.Cost{Currency: "USD", Since: s.At, At: s.At, Month: money.Of(month)}
		return s
	}
	w := &watcher{last: map[string]fleet.Snapshot{"a": of("a", 1), "b": of("b", 20)},
		accounts: accounts{shared: []fleet.Snapshot{of("c", 300), of("b", 7)},
			ended: []money.Spent{{Account: "team", Currency: "USD", Month: "2026-11", Amount: money.Of(4000)}}}}
	require.Equal(t, "4325", fmt.Sprintf("%.0f", w.balance(of("a", 5)).Month.Float()))
}

func TestGroupsAreSelectedByPatterns(t *testing.T) {
	running := []string{"cpu", "gpu-a", "gpu-b"}
	for _, c := range []struct {
		patterns, want []string
		why            string
	}{
		{patterns: []string{"gpu-*"}, want: []string{"gpu-a", "gpu-b"}},
		{patterns: []string{"gpu-?", "new", "gpu-a"}, want: []string{"gpu-a", "gpu-b", "new"}},
		{patterns: []string{"x*"}, why: "no node group matches x*: there are cpu, gpu-a, gpu-b"},
	} {
		got, err := matching(c.patterns, running)
		require.Equal(t, c.want, got)
		if c.why != "" {
			require.EqualError(t, err, c.why)
		}
	}
	_, err := matching([]string{"*"}, nil)
	require.EqualError(t, err, "no node group matches *: none runs")
	_, err = matching([]string{"x*"}, make([]string, 200))
	require.ErrorContains(t, err, "and 190 more")
}
