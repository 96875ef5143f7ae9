package observer_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

func TestGroupReceivesDifferingInstances(t *testing.T) {
	whole := whole(attempt("a-t0-1"))
	change := func(f func(*fleet.Found)) fleet.Found { c := whole; f(&c); return c }
	notReady := row("a-t0-1", fleet.Ready)
	notReady.NotReady = true
	older := change(func(f *fleet.Found) { f.Attempt.Number = 0 })
	broken := change(func(f *fleet.Found) { f.Slice = false })
	for name, c := range map[string]struct {
		row   fleet.InstanceView
		found []fleet.Found
		want  fleet.Differences
	}{
		"as published": {row("a-t0-1", fleet.Ready), []fleet.Found{whole}, fleet.Differences{}},
		"not ready, reported": {
			notReady, []fleet.Found{change(func(f *fleet.Found) { f.Ready = false })}, fleet.Differences{},
		},
		"ready again": {notReady, []fleet.Found{whole}, fleet.Differences{Found: fleet.Founds{whole}}},
		"gone":        {row("a-t0-1", fleet.Ready), nil, fleet.Differences{Empty: true, Missing: []string{"a-t0-1"}}},
		"not booked":  {row("a-t0-2", fleet.Pending), []fleet.Found{whole}, fleet.Differences{Found: fleet.Founds{whole}}},
		"of a failed": {row("a-t0-1", fleet.Failed), []fleet.Found{whole}, fleet.Differences{Found: fleet.Founds{whole}}},
		"older attempt": {row("a-t0-1", fleet.Ready), []fleet.Found{whole, older},
			fleet.Differences{Found: fleet.Founds{older}}},
		"under way": {row("a-t0-1", fleet.Peering), []fleet.Found{{Attempt: whole.Attempt, Slice: true}},
			fleet.Differences{}},
		"not made yet": {row("a-t0-1", fleet.Peering), nil, fleet.Differences{Empty: true}},
		"no slice":     {row("a-t0-1", fleet.Ready), []fleet.Found{broken}, fleet.Differences{Found: fleet.Founds{broken}}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub().with([]fleet.InstanceView{c.row}, "lca-a-t0-1-1")
			h.found = c.found
			require.NoError(t, h.rounds(t, 2))
			c.want.Round, c.want.Epoch, c.want.Revision = fleet.RoundID{Term: 1, Number: 2}, "t0", 7
			require.Equal(t, c.want, h.rows["group/a"])
		})
	}
}

func TestProviderReceivesDifferingHolds(t *testing.T) {
	ready, made := row("a-t0-1", fleet.Ready), whole(attempt("a-t0-1"))
	leaving := made
	leaving.Terminating = true
	for name, c := range map[string]struct {
		rows           []fleet.InstanceView
		holds          []string
		found          []fleet.Found
		unheld, unused []string
	}{
		"held and used":    {rows: []fleet.InstanceView{ready}, holds: []string{"lca-a-t0-1-1"}, found: []fleet.Found{made}},
		"held, on its way": {rows: []fleet.InstanceView{row("a-t0-1", fleet.Peering)}, holds: []string{"lca-a-t0-1-1"}},
		"not held": {rows: []fleet.InstanceView{ready}, found: []fleet.Found{made},
			unheld: []string{"lca-a-t0-1-1"}},
		"not held, leaving": {rows: []fleet.InstanceView{ready}, found: []fleet.Found{leaving}},
		"not used":          {holds: []string{"lca-a-t0-1-1"}, unused: []string{"lca-a-t0-1-1"}},
		"of a failed one": {rows: []fleet.InstanceView{row("a-t0-1", fleet.Failed)}, holds: []string{"lca-a-t0-1-1"},
			unused: []string{"lca-a-t0-1-1"}},
		"objects not gone": {holds: []string{"lca-a-t0-1-1"}, found: []fleet.Found{made}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub().with(c.rows, c.holds...)
			h.found = c.found
			require.NoError(t, h.rounds(t, 2))
			told := h.rows["provider/milan"]
			require.Equal(t, c.unheld, told.Unheld)
			require.Equal(t, c.unused, told.Unused)
			require.Equal(t, fleet.RoundID{Term: 1, Number: 2}, told.Round)
			require.EqualValues(t, 9, told.Revision)
		})
	}
}

// In its first two rounds a leader signals all entities. In later rounds it signals the entities that differ from the
// objects, or that differed in the last round.
func TestOnlyDifferingEntitiesAreSignalled(t *testing.T) {
	h := newHub().with([]fleet.InstanceView{row("a-t0-1", fleet.Ready)}, "lca-a-t0-1-1")
	h.found = []fleet.Found{whole(attempt("a-t0-1"))}
	synctest.Test(t, func(t *testing.T) {
		leads(t, h.observer(), func(next func() error) {
			all := []string{"group/a", "provider/milan"}
			require.ElementsMatch(t, all, h.told)
			h.between(nil)
			noError(t, next())
			require.ElementsMatch(t, all, h.told)
			h.between(nil)
			noError(t, next())
			require.Empty(t, h.told)
			h.between(func() { h.found = nil })
			noError(t, next())
			require.Equal(t, []string{"group/a"}, h.told)
			h.between(func() { h.found = []fleet.Found{whole(attempt("a-t0-1"))} })
			noError(t, next())
			require.Equal(t, []string{"group/a"}, h.told, "it receives the round without differences")
			h.between(nil)
			noError(t, next())
			require.Empty(t, h.told)
		})
	})
}

// An entity that a signal did not reach receives a signal in the next round. A closed entity receives no signal.
func TestUnreachedEntityIsSignalledAgain(t *testing.T) {
	for entity := range map[string]bool{"group/a": true, "provider/milan": true} {
		for err, again := range map[error][]string{errors.New("no answer"): {entity}, fleet.ErrNotRunning: nil} {
			h := newHub().with([]fleet.InstanceView{row("a-t0-1", fleet.Ready)}, "lca-a-t0-1-1")
			h.found = []fleet.Found{whole(attempt("a-t0-1"))}
			h.fails["tell "+entity] = err
			require.NoError(t, h.rounds(t, 3))
			require.Equal(t, again, h.told, "%s: %v", entity, err)
		}
	}
}

// When a round cannot read a group or a provider, it sends no differences about this entity or its objects. When
// Temporal's index lists nothing, the round takes the names from earlier reads and from the objects.
func TestUnreadEntitiesAreNotJudged(t *testing.T) {
	h := newHub().with([]fleet.InstanceView{row("a-t0-1", fleet.Peering)}, "lca-a-t0-1-1")
	synctest.Test(t, func(t *testing.T) {
		o := h.observer()
		leads(t, o, func(next func() error) {
			h.between(func() { h.unlisted = true })
			noError(t, next(), next(), next(), next(), next(), next())
			require.Contains(t, h.read, "group/a", "a row that is gone from the index is read by its id")
			require.Contains(t, h.read, "provider/milan")
			h.between(func() { h.fails["group/a"] = fleet.ErrUnavailable })
			noError(t, next())
			require.Empty(t, h.rows["provider/milan"].Unused, "the hold of a group that does not answer")
			require.NotContains(t, h.told, "group/a")
			require.Equal(t, 1, o.Progress().Unread)
			h.between(func() { delete(h.fails, "group/a"); delete(h.groups, "a") })
			noError(t, next())
			require.Equal(t, []string{"lca-a-t0-1-1"}, h.rows["provider/milan"].Unused, "the group does not run")
		})
	})
}

// Temporal's index lists nothing. A new leader finds the entities by the objects that exist.
func TestNewLeaderFindsEntitiesByTheirObjects(t *testing.T) {
	h := newHub().with([]fleet.InstanceView{row("a-t0-1", fleet.Ready)}, "lca-a-t0-1-1")
	h.unlisted, h.found = true, []fleet.Found{whole(attempt("a-t0-1"))}
	h.fails["index"] = errors.New("the visibility store is away")
	require.NoError(t, h.rounds(t, 2))
	require.ElementsMatch(t, []string{"group/a", "provider/milan"}, h.told)
}

// A failed round interrupts the sequence, so the round after it does not count as the second of two successive rounds.
func TestFailedRoundInterruptsTheSequence(t *testing.T) {
	h := newHub().with([]fleet.InstanceView{row("a-t0-1", fleet.Ready)}, "lca-a-t0-1-1")
	h.found = []fleet.Found{whole(attempt("a-t0-1"))}
	synctest.Test(t, func(t *testing.T) {
		leads(t, h.observer(), func(next func() error) {
			first := h.rows["group/a"].Round
			h.between(func() { h.fails["list"] = errors.New("no answer") })
			require.Error(t, next())
			h.between(func() { delete(h.fails, "list") })
			noError(t, next())
			require.True(t, h.rows["group/a"].Round.After(first), "all receive two complete rounds")
			require.False(t, h.rows["group/a"].Round.Follows(first))
			h.between(nil)
			noError(t, next())
			require.Empty(t, h.told)
		})
	})
}

// A round that cannot list the objects returns the error and signals no entity.
func TestRoundWithoutAListSignalsNobody(t *testing.T) {
	for what, says := range map[string]string{"list": "list objects", "peers": "list peerings"} {
		h := newHub().with([]fleet.InstanceView{row("a-t0-1", fleet.Ready)})
		h.fails[what] = errors.New("no answer")
		require.ErrorContains(t, h.rounds(t, 2), says+": no answer")
		require.Empty(t, h.told)
	}
	h := newHub().with([]fleet.InstanceView{row("a-t0-1", fleet.Ready)})
	h.fails["offers"] = errors.New("no answer")
	require.NoError(t, h.rounds(t, 2), "offers are not needed")
}

// The observer starts an entity for each of our peerings and slices. It starts none for an object that does not name
// its provider.
func TestEntitiesOfOurObjectsAreStarted(t *testing.T) {
	h := newHub()
	nameless, elsewhere := attempt("a-t0-2"), attempt("a-t0-3")
	nameless.Provider.ID, elsewhere.Provider.ID = "", "turin"
	h.found = []fleet.Found{whole(attempt("a-t0-1")), whole(nameless), whole(elsewhere)}
	h.peers = []fleet.Provider{{ID: "rome"}, {ID: "milan"}}
	h.fails["ensure turin"] = errors.New("no answer")
	require.NoError(t, h.rounds(t, 2))
	require.ElementsMatch(t, []string{"milan", "rome", "turin"}, h.ensured)
}

// The entity of an unused provider has no timer. When the provider has been unused for more than a day, a round
// signals the entity, so that it can close.
func TestUnusedProviderIsWokenToClose(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*fleet.ProviderSnapshot)
		told   []string
	}{
		"of no use":    {func(*fleet.ProviderSnapshot) {}, []string{"provider/milan"}},
		"not for long": {func(p *fleet.ProviderSnapshot) { p.Since = p.Since.Add(time.Hour) }, nil},
		"peered":       {func(p *fleet.ProviderSnapshot) { p.Phase = fleet.Lingering }, nil},
		"cordoned":     {func(p *fleet.ProviderSnapshot) { p.Cordoned = p.Since }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHub()
				h.offers = []fleet.Offer{{Provider: "milan"}}
				p := fleet.ProviderSnapshot{ID: "milan", Phase: fleet.Absent,
					Since: time.Now().Add(-fleet.CloseAfter - time.Second)}
				c.change(&p)
				h.providers["milan"] = p
				leads(t, h.observer(), func(next func() error) {
					noError(t, next())
					h.between(nil)
					noError(t, next())
					require.Equal(t, c.told, h.told)
				})
			})
		})
	}
}

// A round signals lost instances to groups and faults to providers, and it cordons Nodes.
func TestRoundSignalsLossesAndFaults(t *testing.T) {
	h := newHub().with([]fleet.InstanceView{row("a-t0-1", fleet.Ready)}, "lca-a-t0-1-1")
	h.found = []fleet.Found{whole(attempt("a-t0-1"))}
	synctest.Test(t, func(t *testing.T) {
		o := h.observer()
		leads(t, o, func(next func() error) {
			noError(t, next())
			h.between(func() { h.seen["milan"] = backend.Observation{Tenant: fleet.RefusingCordoned} })
			noError(t, next())
			require.Empty(t, h.told, "once is not twice")
			noError(t, next())
			require.Equal(t, fleet.RefusingCordoned, h.rows["provider/milan"].Standing.Tenant)
			require.Equal(t, []string{"cordon lca-a-t0-1-1"}, h.cordons)
			require.Equal(t, map[string]string{"milan": "TenantCordoned"}, o.Conditions.Of(time.Now()), "published")
			require.Equal(t, file("milan"), h.looked[0].Credentials)
			h.between(func() {
				h.offers = []fleet.Offer{{Provider: "milan", Credentials: file("new")}}
				h.seen["milan"] = backend.Observation{Tenant: fleet.RefusingDrained}
			})
			noError(t, next(), next())
			require.Equal(t, "a-t0-1", h.rows["group/a"].Lost[0].Instance)
			require.Equal(t, file("new"), h.looked[0].Credentials, "those that the offer names now")
		})
	})
}

// A paused observer changes nothing. When another cluster has claimed the hub, the observer changes nothing either,
// and its round fails.
func TestPausedObserverChangesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		hub  workflows.HubState
		err  error
		says string
	}{
		"paused":          {hub: workflows.HubState{ObserverPaused: true}},
		"another cluster": {err: errors.New("hub default belongs to cluster X"), says: "belongs to cluster X"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHub().with([]fleet.InstanceView{row("a-t0-1", fleet.Ready)})
				o := h.observer()
				o.Hub = func(context.Context) (workflows.HubState, error) { return c.hub, c.err }
				leads(t, o, func(next func() error) {
					if err := next(); c.says == "" {
						require.NoError(t, err)
					} else {
						require.ErrorContains(t, err, c.says)
					}
					require.Empty(t, h.told)
					require.Empty(t, h.looked)
					require.Equal(t, c.hub.ObserverPaused, o.Progress().Paused)
					_, known := o.Active("milan")
					require.Equal(t, c.err == nil, known, "the market continues while the observer is paused")
				})
			})
		})
	}
}

// A thousand groups and providers, behind a Temporal that is 250 ms away, are read within a round. A hundred silent
// providers are observed within 20 s, and the providers that answer are judged.
func TestLargeHubIsObservedInTime(t *testing.T) {
	h := newHub()
	h.trip = 250 * time.Millisecond
	for n := range 500 {
		id := fmt.Sprint("p", n)
		h.groups[fmt.Sprint("g", n)] = fleet.Snapshot{Group: fmt.Sprint("g", n), Epoch: "t0"}
		h.providers[id] = fleet.ProviderSnapshot{ID: id, Phase: fleet.Established, Holds: []string{"lca-g0-t0-1-1"},
			Offer: &fleet.Offer{Credentials: file(id)}}
		if n < 100 {
			h.silent[id] = errHang
		}
	}
	synctest.Test(t, func(t *testing.T) {
		o := h.observer()
		leads(t, o, func(next func() error) {
			noError(t, next())
			h.between(nil)
			began := time.Now()
			noError(t, next())
			require.Less(t, time.Since(began), 20*time.Second)
			require.Equal(t, fleet.AccessSilent, h.rows["provider/p0"].Standing.Access)
			require.Len(t, h.looked, 500)
			require.Zero(t, o.Progress().Unread)
		})
	})
}

// A node is lost while the observer is paused. The group pays for the node only until the last round that listed the
// objects.
func TestPausedRoundsDoNotProlongCosts(t *testing.T) {
	h := newHub().with([]fleet.InstanceView{row("n1", fleet.Ready)}, "a/n1")
	h.found = []fleet.Found{whole(attempt("n1"))}
	var paused atomic.Bool
	synctest.Test(t, func(t *testing.T) {
		o := h.observer()
		o.Hub = func(context.Context) (workflows.HubState, error) {
			return workflows.HubState{ObserverPaused: paused.Load()}, nil
		}
		leads(t, o, func(next func() error) {
			for range 4 {
				time.Sleep(time.Minute)
				require.NoError(t, next())
			}
			paused.Store(true)
			time.Sleep(8*time.Hour + 30*time.Second) // time between two rounds
			h.mu.Lock()
			h.found = []fleet.Found{whole(attempt("other"))}
			h.mu.Unlock()
			paused.Store(false)
			require.NoError(t, next())
			d := h.rows["group/a"]
			require.Contains(t, d.Missing, "n1", "%+v", d)
			require.GreaterOrEqual(t, d.Before, int64(8*3600))
		})
	})
}
