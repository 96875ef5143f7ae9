//go:build externalgrpc

package inprocess

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/ca"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	caconfig "k8s.io/autoscaler/cluster-autoscaler/config"
)

func refused() *fleet.Failure {
	return fleet.NewFailure(fleet.CodeRefused, "milan", "Tenant", "the provider said no")
}

// A group fails. CA does not use it for a while and releases its instance, and another group serves the pod.
func TestS8FailureMovesThePodToAnotherGroup(t *testing.T) {
	w := newWorld(t, "- {id: aaa, provider: milan}\n- {id: bbb, provider: turin, shape: {cpu: 3}}",
		offers(offer("milan", "north", 4, 1), offer("turin", "south", 4, 2)))
	w.failing["aaa"] = refused()
	w.pods("web", 1)
	require.Equal(t, []string{"aaa +1"}, w.loops(1), "it leaves less unused")
	require.Equal(t, []string{"aaa releases 1", "bbb +1"}, w.loops(1))
	require.Contains(t, w.status(), "Backoff")
	require.Contains(t, w.status(), "the provider said no")
	require.Empty(t, w.loops(3))
	require.Equal(t, map[string]int{"bbb": 1}, w.targets())
	require.Zero(t, w.pending())
}

// CA releases a failed instance even if the group then has fewer nodes than its min. CA waits before each further
// try, each time twice as long as before.
func TestS9S10S30FailuresAtMinBackOff(t *testing.T) {
	w := newWorld(t, "- {id: aaa, min: 1}", offers(offer("milan", "north", 4, 1)), func(o *caconfig.AutoscalingOptions) {
		o.InitialNodeGroupBackoffDuration, o.MaxNodeGroupBackoffDuration = 100*time.Millisecond, time.Minute
	})
	w.pace = 0
	w.failing["aaa"] = refused()
	var grown []time.Time
	testkit.Until(t, patience, "four tries", func() error {
		for _, asked := range w.loops(1) {
			require.Contains(t, []string{"aaa +1", "aaa releases 1"}, asked)
			if asked == "aaa +1" {
				grown = append(grown, time.Now()) // CA's backoff uses the wall clock; the time is taken after the call
			}
		}
		require.LessOrEqual(t, w.targets()["aaa"], 1)
		if len(grown) < 4 {
			return fmt.Errorf("%d tries", len(grown))
		}
		return nil
	})
	for n, wait := range []time.Duration{100, 200, 400} {
		require.Greater(t, grown[n+1].Sub(grown[n]), wait*time.Millisecond)
	}
}

// CA releases a hanging instance after its max-node-provision-time. The node does not appear later.
func TestS11HangingInstanceIsReleased(t *testing.T) {
	w := newWorld(t, "- id: aaa", offers(offer("milan", "north", 4, 1)))
	w.hanging["aaa"] = true
	w.pace = time.Minute
	w.pods("web", 1)
	require.Equal(t, []string{"aaa +1"}, w.loops(14))
	w.finish("web")
	require.Equal(t, []string{"aaa releases 1"}, w.loops(5))
	require.Empty(t, w.targets())
	require.Empty(t, w.loops(10))
}

// After a short lack of capacity, CA grows the group again half a minute later with the shipped flags, and five
// minutes later with its own defaults. CA uses the wall clock to decide when it may grow a group again.
func TestShortLackOfRoomDelaysOnlyHalfAMinute(t *testing.T) {
	backedOff := func(change ...func(*caconfig.AutoscalingOptions)) (loops int) {
		w := newWorld(t, "- id: aaa", offers(offer("milan", "north", 4, 1)), change...)
		w.failing["aaa"] = refused()
		w.pods("web", 1)
		require.Equal(t, []string{"aaa +1", "aaa releases 1"}, w.loops(2))
		for strings.Contains(w.status(), "Backoff") && loops < 100 {
			w.loops(1)
			loops++
		}
		return loops
	}
	require.Equal(t, 4, backedOff(), "with the flags we ship")
	require.Equal(t, 31, backedOff(asByDefault), "with CA's own")
}

// The provider of all virtual nodes dies, so most nodes of a small cluster are unready. With the shipped flags CA
// continues. With its defaults it would stop completely.
func TestS24DeadProviderDoesNotStopCA(t *testing.T) {
	for _, c := range []struct {
		name   string
		change []func(*caconfig.AutoscalingOptions)
		asked  []string
	}{
		{"with the flags we ship", nil, []string{"burst-turin +1"}},
		{"with CA's own", []func(*caconfig.AutoscalingOptions){asByDefault}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, "- {id: burst, per: provider}", offers(offer("milan", "north", 4, 1)), c.change...)
			w.pods("web", 4)
			require.Equal(t, []string{"burst-milan +4"}, w.loops(2))
			w.pass(time.Hour) // CA treats young nodes as still starting
			w.offers = append(w.offers, offer("turin", "south", 4, 2))
			w.kill("milan")
			w.pods("more", 1)
			require.Equal(t, c.asked, w.loops(6))
		})
	}
}

// The instances on the dead provider are lost after budgets.unready (5 min), and CA requests new ones on another
// provider. This also works for a CA that had stopped scaling because too many nodes were unready.
func TestS24DeadProviderIsReplaced(t *testing.T) {
	for name, change := range map[string]func(*caconfig.AutoscalingOptions){
		"with the flags we ship": func(*caconfig.AutoscalingOptions) {}, "with CA's own": asByDefault,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "- {id: burst, per: provider}", offers(offer("milan", "north", 4, 1)), change)
			w.pods("web", 4)
			require.Equal(t, []string{"burst-milan +4"}, w.loops(2))
			w.pass(time.Hour)
			w.offers = append(w.offers, offer("turin", "south", 4, 2))
			w.loops(1)
			w.kill("milan")
			w.pace = time.Minute
			for _, asked := range w.loops(12) {
				require.Contains(t, asked, "burst-turin +")
			}
			require.Equal(t, map[string]int{"burst-turin": 4}, w.targets())
			require.Zero(t, w.nodesOf("milan"))
			require.Zero(t, w.pending())
		})
	}
}

// A group has nodes on two providers, in a cluster with many machines. The nodes of a dead provider make the group
// unhealthy for at most budgets.unready, and do not count towards its max.
func TestS24DeadNodesMakeAGroupUnhealthyOnlyBriefly(t *testing.T) {
	for name, c := range map[string]struct {
		group       string
		alive, dead int // nodes on turin and on milan
	}{
		"all are dead":         {"- {id: burst, max: 10}", 0, 4},
		"half of them":         {"- {id: burst, max: 12}", 4, 4},
		"they fill up its max": {"- {id: burst, max: 4}", 1, 3},
	} {
		for flags, change := range map[string]func(*caconfig.AutoscalingOptions){
			"with the flags we ship": func(*caconfig.AutoscalingOptions) {}, "with CA's own": asByDefault,
		} {
			t.Run(name+", "+flags, func(t *testing.T) {
				w := newWorld(t, c.group, offers(offer("milan", "north", c.dead, 1), offer("turin", "south", 9, 2)), change)
				w.machines(28) // in addition to the two existing machines
				w.pods("web", c.dead+c.alive)
				require.Len(t, w.loops(2), 1)
				require.Equal(t, c.dead, w.nodesOf("milan"), "the cheapest")
				w.pass(time.Hour)
				w.kill("milan")
				w.pace = time.Minute
				w.loops(12)
				require.Zero(t, w.nodesOf("milan"))
				require.Equal(t, map[string]int{"burst": c.dead + c.alive}, w.targets())
				require.Zero(t, w.pending())
			})
		}
	}
}

// The workflow of one group cannot apply its config. No other group is affected.
func TestStuckGroupAffectsNoOther(t *testing.T) {
	for name, edited := range map[string]string{
		"a changed group": "- id: aaa\n- {id: bbb, max: 5}",
		"a new group":     "- id: aaa\n- id: bbb\n- id: ccc",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "- id: aaa\n- id: bbb", offers(offer("milan", "north", 4, 1)))
			require.Empty(t, w.loops(1))
			stuck := map[string]string{"a changed group": "bbb", "a new group": "ccc"}[name]
			w.groups.set(func(g *groups) { g.wedged = stuck })
			w.edit(edited)
			w.pods("web", 1)
			require.Len(t, w.loops(1), 1)
			require.Zero(t, w.pending())
		})
	}
}

// The server cannot read a group for hours and serves its last state. CA tries to delete an instance that does not
// appear, and a Node that is gone. The server refuses both calls. CA uses the other group all the time.
func TestUnreadableGroupAffectsNoOther(t *testing.T) {
	w := newWorld(t, "- {id: aaa, per: provider}", offers(offer("milan", "north", 4, 1), offer("turin", "south", 4, 1)))
	w.pods("web", 2, selecting(cluster, "milan"))
	require.Equal(t, []string{"aaa-milan +2"}, w.loops(2))
	w.hanging["aaa-milan"] = true
	w.pods("late", 1, selecting(cluster, "milan"))
	require.Equal(t, []string{"aaa-milan +1"}, w.loops(1))
	w.groups.set(func(g *groups) { g.silent = "aaa-milan" })
	w.fails = true
	for _, n := range w.listNodes() {
		if n.Labels[cluster] == "milan" {
			w.removeNode(n.Name)
			break
		}
	}
	since := w.proxy.Last()
	for n, age := range []time.Duration{0, time.Hour, time.Hour} {
		w.pass(age)
		w.pods(fmt.Sprint("turin-", n), 1, selecting(cluster, "turin"))
		asked := slices.DeleteFunc(w.loops(6), func(a string) bool { return strings.HasPrefix(a, "aaa-milan") })
		require.Equal(t, []string{"aaa-turin +1"}, asked)
	}
	require.Equal(t, 3, w.targets()["aaa-milan"])
	failed := w.proxy.Calls(func(c ca.Call) bool { return c.Seq > since && c.Failed() })
	require.NotEmpty(t, failed)
	for _, c := range failed {
		require.Equal(t, "NodeGroupDeleteNodes", c.Method, "%s", c)
	}

	w.groups.set(func(g *groups) { g.silent = "" })
	require.Contains(t, w.loops(3), "aaa-milan releases 2", "what CA had given up on")
	require.Equal(t, 1, w.targets()["aaa-milan"])
	require.Equal(t, 1, w.nodesOf("milan"))
}

// A group with nodes leaves the config. From then on it only shrinks.
func TestRemovedGroupOnlyShrinks(t *testing.T) {
	w := newWorld(t, "- {id: aaa, min: 1, provider: milan}\n- {id: bbb, provider: turin}",
		offers(offer("milan", "north", 4, 1), offer("turin", "south", 4, 1)))
	w.pods("web", 1, selecting(cluster, "milan"))
	require.Equal(t, []string{"aaa +1"}, w.loops(2), "its min")
	w.edit("- {id: bbb, provider: turin}")
	w.pods("more", 2)
	require.Equal(t, []string{"bbb +2"}, w.loops(3))
	w.finish("web")
	w.finish("more")
	w.pace = time.Minute
	require.ElementsMatch(t, []string{"aaa releases 1", "bbb releases 2"}, w.loops(20))
	require.Equal(t, []string{"bbb"}, w.listed())
	require.Empty(t, w.targets())
}
