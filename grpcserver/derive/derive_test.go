package derive

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver/config"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// world is a market with a clock.
type world struct {
	market.Market
	unknown bool
	now     time.Time
}

func newWorld(offers ...market.Offer) *world {
	return &world{Market: market.Market{Offers: offers}, now: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)}
}

func (w *world) groups() *Groups {
	return &Groups{Market: func() (market.Market, bool) { return w.Market, !w.unknown },
		Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return w.now }}
}

func offer(provider, region string, price float64) market.Offer {
	room := corev1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("16Gi")}
	return market.Offer{Name: provider, Provider: provider, Lendable: room, Free: room, Price: price,
		Labels: map[string]string{"topology.kubernetes.io/region": region}}
}

func base(id string, per config.Per) config.NodeGroup {
	return config.NodeGroup{ID: id, MinPerGroup: 1, Defaults: config.Defaults{Max: 10, Per: per,
		Labels: map[string]string{"tier": "burst"},
		Shape:  corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("4Gi")}}}
}

func ids(specs []fleet.GroupSpec) (out []string) {
	for _, s := range specs {
		out = append(out, s.ID)
	}
	return out
}

func TestPerProviderDerivesOneGroupEach(t *testing.T) {
	w := newWorld(offer("milan", "north", 2), offer("turin", "south", 1))
	specs := w.groups().Expand([]config.NodeGroup{base("plain", ""), base("l", config.PerProvider)})
	require.Equal(t, []string{"plain", "l-milan", "l-turin"}, ids(specs))

	milan := specs[1]
	require.Equal(t, "milan", milan.Provider)
	require.Equal(t, map[string]string{"tier": "burst", "topology.kubernetes.io/region": "north",
		"liqo.io/remote-cluster-id": "milan"}, milan.Labels, "what its Nodes will carry")
	require.Equal(t, []int{1, 10}, []int{milan.Min, milan.Max})
}

func TestPerLabelDerivesOneGroupPerValue(t *testing.T) {
	unlabelled := offer("rome", "", 1)
	unlabelled.Labels = nil
	w := newWorld(offer("milan", "north", 2), offer("como", "north", 3), offer("turin", "south", 1), unlabelled)
	b := base("l", "label:topology.kubernetes.io/region")
	b.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"topology.kubernetes.io/region": "north"}}
	specs := w.groups().Expand([]config.NodeGroup{base("r", "label:topology.kubernetes.io/region"), b})
	require.Equal(t, []string{"l-north", "r-north", "r-south"}, ids(specs))
	require.Equal(t, map[string]string{"topology.kubernetes.io/region": "south"}, specs[2].Selector.MatchLabels)
	require.Equal(t, "south", specs[2].Labels["topology.kubernetes.io/region"])
	require.Empty(t, specs[2].Provider)
}

// An offer disappears and returns every five seconds. CA sees no change.
func TestFlappingOfferChangesNothing(t *testing.T) {
	w := newWorld(offer("milan", "north", 2), offer("turin", "south", 1))
	g, all := w.groups(), w.Offers
	first := g.Expand([]config.NodeGroup{base("l", config.PerProvider)})
	for n := range 120 {
		w.now = w.now.Add(5 * time.Second)
		w.Offers = all[n%2:]
		require.Equal(t, first, g.Expand([]config.NodeGroup{base("l", config.PerProvider)}))
	}
	w.Offers = all[1:]
	w.now = w.now.Add(Linger - 10*time.Second)
	require.Equal(t, first, g.Expand([]config.NodeGroup{base("l", config.PerProvider)}))
	w.unknown = true // the market is unknown, so the removal is not certain
	w.now = w.now.Add(Linger)
	require.Equal(t, first, g.Expand([]config.NodeGroup{base("l", config.PerProvider)}))
	w.unknown = false
	w.now = w.now.Add(Linger + time.Second)
	require.Equal(t, []string{"l-turin"}, ids(g.Expand([]config.NodeGroup{base("l", config.PerProvider)})))
}

func TestDerivedGroupsFollowTheirBase(t *testing.T) {
	w := newWorld(offer("milan", "north", 2))
	g := w.groups()
	b := base("l", config.PerProvider)
	require.Len(t, g.Expand([]config.NodeGroup{b}), 1)
	b.Max = 3
	require.Equal(t, 3, g.Expand([]config.NodeGroup{b})[0].Max)
	w.Offers = nil
	b.Max = 4
	require.Equal(t, 4, g.Expand([]config.NodeGroup{b})[0].Max, "also while nothing is offered")
	require.Empty(t, g.Expand([]config.NodeGroup{}))
}

// The server derives at most DefaultMax groups, for the cheapest offers. These groups stay when other offers become
// cheaper.
func TestDerivedGroupsAreBounded(t *testing.T) {
	w := newWorld()
	for n := range 60 {
		w.Offers = append(w.Offers, offer(fmt.Sprintf("p%02d", n), "north", float64(100-n)))
	}
	g := w.groups()
	first := ids(g.Expand([]config.NodeGroup{base("l", config.PerProvider)}))
	require.Len(t, first, DefaultMax)
	require.Equal(t, "l-p10", first[0], "the ten dearest are left out")
	require.Contains(t, g.Refused()["l-p00"], "the maximum number of derived node groups")
	for n := range w.Offers {
		w.Offers[n].Price = float64(n)
	}
	require.Equal(t, first, ids(g.Expand([]config.NodeGroup{base("l", config.PerProvider)})))
}

// When offers have prices by resource, the shape of the group decides which offer is the cheapest.
func TestCheapestOffersByResourcePriceAreKept(t *testing.T) {
	perNode, perCPU := offer("node", "north", 0.2), offer("cpu", "north", 0)
	perCPU.Prices = map[corev1.ResourceName]float64{"cpu": 0.03}
	for want, spec := range map[string]config.NodeGroup{
		"l-cpu": base("l", config.PerProvider), // 2 CPUs cost 0.06
		"l-large-node": {ID: "l", Defaults: config.Defaults{Max: 3, Per: config.PerProvider},
			Sizes: []config.Size{{Name: "large", Shape: shape("8", "16Gi")}}},
	} {
		g := newWorld(perNode, perCPU).groups()
		g.Max = 1
		require.Equal(t, []string{want}, ids(g.Expand([]config.NodeGroup{spec})))
	}
}

// When more groups are possible than the limit allows, each size keeps its cheapest providers. A group of small nodes
// does not displace a group of large nodes, although large nodes cost more.
func TestEachSizeKeepsItsCheapestProviders(t *testing.T) {
	g := newWorld(offer("dear", "north", 1.5), offer("cheap", "north", 1)).groups()
	g.Max = 2
	spec := base("l", config.PerProvider)
	spec.Shape, spec.Sizes = nil, []config.Size{{Name: "small", Shape: shape("2", "4Gi")},
		{Name: "large", Shape: shape("4", "8Gi")}}
	require.Equal(t, []string{"l-large-cheap", "l-small-cheap"}, ids(g.Expand([]config.NodeGroup{spec})))
}

// When two ids are equal, the new group is refused, and no existing group is renamed.
func TestEqualIDsRefuseTheNewGroup(t *testing.T) {
	w := newWorld(offer("b-c", "north", 1))
	g := w.groups()
	require.Equal(t, []string{"a-b-c"}, ids(g.Expand([]config.NodeGroup{base("a", config.PerProvider)})))
	w.Offers = append(w.Offers, offer("c", "south", 0.5))
	specs := []config.NodeGroup{base("a", config.PerProvider), base("a-b", config.PerProvider)}
	require.Equal(t, []string{"a-b-b-c", "a-b-c", "a-c"}, ids(g.Expand(specs)))
	require.Contains(t, g.Refused()["a-b-c"], "the group derived from a and b-c")
	require.Equal(t, "b-c", g.listed["a-b-c"].value)

	fixed := base("a-c", "")
	require.Equal(t, []string{"a-c", "a-b-c"}, ids(g.Expand(append(specs[:1:1], fixed))), "a configured one wins")
}
