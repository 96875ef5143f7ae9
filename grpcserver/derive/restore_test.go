package derive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver/config"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// restarted returns the groups that a new server derives while the groups of the first server run.
func (w *world) restarted(running []fleet.GroupSpec) *Groups {
	g := w.groups()
	g.InForce = func() ([]fleet.GroupSpec, bool) { return running, true }
	return g
}

// Running groups stay when other offers become cheaper, even after a restart and on another replica.
func TestRunningGroupsSurviveARestart(t *testing.T) {
	for name, c := range map[string]struct {
		per config.Per
		max int
	}{"per provider": {config.PerProvider, 0}, "per label": {"label:topology.kubernetes.io/region", 20}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			for n := range 60 {
				w.Offers = append(w.Offers, offer(fmt.Sprintf("p%02d", n), fmt.Sprintf("r%02d", n), float64(100-n)))
			}
			g := w.groups()
			g.Max = c.max
			first := g.Expand([]config.NodeGroup{base("l", c.per)})
			for n := range w.Offers {
				w.Offers[n].Price = float64(n)
			}
			require.Equal(t, first, g.Expand([]config.NodeGroup{base("l", c.per)}), "the server that runs keeps them")
			again := w.restarted(first)
			again.Max = c.max
			require.Equal(t, first, again.Expand([]config.NodeGroup{base("l", c.per)}))
			require.Equal(t, first, again.Expand([]config.NodeGroup{base("l", c.per)}))
		})
	}
}

// Two base groups and two providers can give the same group id, a-b-c. The id belongs to the first provider, even if
// the other one is cheaper when a server starts again.
func TestIDsKeepTheirValueOverARestart(t *testing.T) {
	configured := []config.NodeGroup{base("a", config.PerProvider), base("a-b", config.PerProvider)}
	w := newWorld(offer("b-c", "north", 1), offer("c", "south", 2))
	provider := func(specs []fleet.GroupSpec) string {
		n := slices.IndexFunc(specs, func(s fleet.GroupSpec) bool { return s.ID == "a-b-c" })
		require.GreaterOrEqual(t, n, 0)
		return specs[n].Provider
	}
	first := w.groups().Expand(configured)
	require.Equal(t, "b-c", provider(first))
	w.Offers[0].Price = 3
	require.Equal(t, "b-c", provider(w.restarted(first).Expand(configured)))
}

// A server starts while an offer is missing, or while the market cannot be read. The server still lists the offer's
// group.
func TestGroupOfAMissingOfferSurvivesARestart(t *testing.T) {
	w := newWorld(offer("milan", "north", 2), offer("turin", "south", 1))
	configured := []config.NodeGroup{base("l", config.PerProvider)}
	first := w.groups().Expand(configured)
	require.Len(t, first, 2)
	w.Offers, w.now = w.Offers[1:], w.now.Add(5*time.Second)
	require.Equal(t, first, w.restarted(first).Expand(configured))
	w.unknown = true
	require.Equal(t, first, w.restarted(first).Expand(configured))
	w.unknown = false
	g := w.restarted(first)
	require.Len(t, g.Expand(configured), 2)
	w.now = w.now.Add(Linger + time.Second)
	require.Equal(t, []string{"l-turin"}, ids(g.Expand(configured)), "it lingers from the start on")
}

// The server derives no group before it knows the running groups, because a new group could take the place of a running
// group.
func TestNoGroupIsDerivedBeforeRunningGroupsAreKnown(t *testing.T) {
	w := newWorld(offer("milan", "north", 2), offer("turin", "south", 1))
	configured := []config.NodeGroup{base("plain", ""), base("l", config.PerProvider)}
	g, known := w.groups(), false
	g.InForce = func() ([]fleet.GroupSpec, bool) { return nil, known }
	require.Equal(t, []string{"plain"}, ids(g.Expand(configured)))
	known = true
	require.Equal(t, []string{"plain", "l-milan", "l-turin"}, ids(g.Expand(configured)))
	known = false
	require.Equal(t, []string{"plain", "l-milan", "l-turin"}, ids(g.Expand(configured)), "it is read once")
}

// Running groups that do not belong to a base in the config are ignored.
func TestOnlyDerivedGroupsAreRestored(t *testing.T) {
	w := newWorld()
	other, retired := base("l-milan", ""), base("m", config.PerProvider)
	specs := append(w.groups().Expand([]config.NodeGroup{other}),
		fleet.GroupSpec{InstanceSpec: fleet.InstanceSpec{ID: retired.ID + "-turin", Provider: "turin"}},
		fleet.GroupSpec{InstanceSpec: fleet.InstanceSpec{ID: "l-rome", Provider: "elsewhere"}})
	require.Empty(t, w.restarted(specs).Expand([]config.NodeGroup{base("l", config.PerProvider)}))
	byLabel := base("l", "label:topology.kubernetes.io/region")
	require.Empty(t, w.restarted(specs).Expand([]config.NodeGroup{byLabel}))
}

// snapshots maps the ids of the running groups to the errors that reads of their snapshots return.
type snapshots map[string]error

func (s snapshots) Running(context.Context) (ids []string, err error) {
	for id := range s {
		ids = append(ids, id)
	}
	return ids, s[""]
}

func (s snapshots) Snapshot(_ context.Context, group string) (fleet.Snapshot, error) {
	return fleet.Snapshot{Group: group, Spec: &fleet.GroupSpec{InstanceSpec: fleet.InstanceSpec{ID: group}}}, s[group]
}

func TestSpecsOfRunningGroupsAreRead(t *testing.T) {
	specs, err := ReadInForce(t.Context(), snapshots{"a": nil, "b": nil, "gone": fleet.ErrNotRunning})
	require.NoError(t, err)
	slices.SortFunc(specs, func(a, b fleet.GroupSpec) int { return len(a.ID) - len(b.ID) })
	require.ElementsMatch(t, []string{"a", "b"}, ids(specs))
	away := errors.New("no answer")
	_, err = ReadInForce(t.Context(), snapshots{"a": nil, "b": away})
	require.ErrorIs(t, err, away)
	require.ErrorContains(t, err, "read node group b")
	_, err = ReadInForce(t.Context(), snapshots{"": away})
	require.ErrorIs(t, err, away)
}
