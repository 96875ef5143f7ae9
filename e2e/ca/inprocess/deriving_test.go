//go:build externalgrpc

package inprocess

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// `per: any` has a limit: before a group has a node, CA knows no label of a provider. CA requests no node for pods
// that select such a label, although a provider offers it.
func TestPerAnyNeverScalesFromZeroForASelector(t *testing.T) {
	w := newWorld(t, "- id: burst", offers(offer("milan", "north", 4, 1), offer("turin", "south", 4, 2)))
	w.pods("south", 1, selecting(region, "south"))
	w.pods("milan", 1, selecting(cluster, "milan"))
	require.Empty(t, w.loops(4))
}

// This is a wrong use of `per: any`. A pod selects milan, and CA uses the group's only node, which is on milan, as
// the group's template. CA requests nodes again and again. The nodes are created on turin, where the pod cannot run.
func TestPerAnyRequestsNodesRepeatedlyForASelector(t *testing.T) {
	w := newWorld(t, "- id: burst", offers(offer("milan", "north", 1, 1), offer("turin", "south", 9, 2)))
	w.pods("first", 1)
	require.Equal(t, []string{"burst +1"}, w.loops(2))
	require.Equal(t, 1, w.nodesOf("milan"))

	w.pods("milan", 1, selecting(cluster, "milan"))
	asked := w.loops(30)
	require.Greater(t, len(asked), 2, "one pod: %v", asked)
	require.Greater(t, w.nodesOf("turin"), 2, "none of them is on milan")
	require.Equal(t, 1, w.pending())
}

func TestScaleFromZeroOnTheSelectedProvider(t *testing.T) {
	for name, c := range map[string]struct{ key, value, group, provider string }{
		"a region":             {region, "south", "burst-turin", "turin"},
		"a provider":           {cluster, "turin", "burst-turin", "turin"},
		"the dearer provider":  {cluster, "rome", "burst-rome", "rome"},
		"the cheaper provider": {region, "north", "burst-milan", "milan"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "- {id: burst, per: provider}", offers(offer("milan", "north", 4, 1), offer("turin", "south", 4, 2),
				offer("rome", "centre", 4, 3)))
			w.pods("web", 1, selecting(c.key, c.value))
			require.Equal(t, []string{c.group + " +1"}, w.loops(10))
			require.Equal(t, 1, w.nodesOf(c.provider))
			require.Zero(t, w.pending())
		})
	}
}

// The sequence is the same as in TestPerAnyRequestsNodesRepeatedlyForASelector. With `per: provider`, CA sees that no
// provider in the north has free capacity, and requests no node.
func TestPerProviderRequestsNoUselessNode(t *testing.T) {
	w := newWorld(t, "- {id: burst, per: provider}", offers(offer("milan", "north", 1, 1), offer("turin", "south", 9, 2)))
	w.pods("fill", 1, selecting(cluster, "milan"))
	require.Equal(t, []string{"burst-milan +1"}, w.loops(2))
	w.pods("north", 1, selecting(region, "north"))
	require.Empty(t, w.loops(30))

	w.offers[0] = offer("milan", "north", 2, 1)
	w.publish()
	require.Equal(t, []string{"burst-milan +1"}, w.loops(2))
	require.Equal(t, 2, w.nodesOf("milan"))
	require.Zero(t, w.pending())
}

func TestPerLabelScalesFromZeroForTheRegion(t *testing.T) {
	w := newWorld(t, "- {id: burst, per: 'label:"+region+"'}", offers(offer("milan", "north", 1, 1),
		offer("como", "north", 1, 3), offer("turin", "south", 9, 2)))
	w.pods("web", 3, selecting(region, "north"))
	require.Equal(t, []string{"burst-north +2"}, w.loops(10), "what the north has")
	require.Equal(t, 1, w.pending())
}

// When an offer appears while CA runs, a group is added. When an offer ends, its group stays and does not grow.
func TestNewOfferAddsAGroup(t *testing.T) {
	w := newWorld(t, "- {id: burst, per: provider}", offers(offer("milan", "north", 4, 1)))
	w.pods("south", 1, selecting(region, "south"))
	require.Empty(t, w.loops(3))
	w.offers = append(w.offers, offer("turin", "south", 4, 2))
	w.publish()
	require.Equal(t, []string{"burst-turin +1"}, w.loops(2))

	w.offers = w.offers[:1]
	w.publish()
	w.pods("more", 1, selecting(region, "south"))
	require.Empty(t, w.loops(5))
	require.Equal(t, []string{"burst-milan", "burst-turin"}, w.listed())
	require.Equal(t, map[string]int{"burst-turin": 1}, w.targets())
}

// A derived group ends when it is empty and its offer has been gone for half an hour.
func TestDerivedGroupEndsAfterItsOffer(t *testing.T) {
	w := newWorld(t, "- {id: burst, per: provider}", offers(offer("milan", "north", 4, 1), offer("turin", "south", 4, 2)))
	w.pods("web", 1, selecting(cluster, "turin"))
	require.Equal(t, []string{"burst-turin +1"}, w.loops(3))

	w.offers = w.offers[:1]
	w.publish()
	w.pods("more", 1, selecting(cluster, "turin"))
	require.Empty(t, w.loops(200), "half an hour and more")
	require.Equal(t, []string{"burst-milan", "burst-turin"}, w.listed(), "it has a node")
	require.Equal(t, 1, w.nodesOf("turin"))

	w.finish("more")
	w.finish("web")
	require.Equal(t, []string{"burst-turin releases 1"}, w.loops(100))
	require.Equal(t, []string{"burst-milan"}, w.listed())
	running, err := w.groups.Running(w.ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"burst-milan"}, running)
}

// An offer disappears and returns every five seconds for ten minutes. No node is requested, and no group ends.
func TestFlappingOfferRequestsNoNode(t *testing.T) {
	w := newWorld(t, "- {id: burst, per: provider}", offers(offer("milan", "north", 4, 1), offer("turin", "south", 4, 2)))
	w.pace = 5 * time.Second
	w.pods("web", 1, selecting(cluster, "turin"))
	require.Equal(t, []string{"burst-turin +1"}, w.loops(3))
	both := w.offers
	for n := range 120 {
		w.offers = both[:1+n%2]
		w.publish()
		require.Empty(t, w.loops(1))
		require.Equal(t, []string{"burst-milan", "burst-turin"}, w.listed())
	}
	require.Equal(t, map[string]int{"burst-turin": 1}, w.targets())
	require.Zero(t, w.pending())
}

// A provider changes a label of its nodes. When the existing group is empty, the provider gets a new group.
func TestChangedLabelReplacesTheEmptyGroup(t *testing.T) {
	w := newWorld(t, "- {id: burst, per: provider}", offers(offer("milan", "north", 4, 1)))
	w.pods("north", 1, selecting(region, "north"))
	require.Equal(t, []string{"burst-milan +1"}, w.loops(3))

	w.offers[0] = offer("milan", "south", 4, 1)
	w.publish()
	w.pods("south", 1, selecting(region, "south"))
	require.Empty(t, w.loops(30), "its node is in the north, as CA believes of all")
	w.finish("north")
	require.Equal(t, []string{"burst-milan releases 1", "burst-milan +1"}, w.loops(100))
	require.Zero(t, w.pending())
	require.Equal(t, 1, w.nodesOf("milan"))
}
