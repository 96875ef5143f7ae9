package derive

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver/config"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/choice"
)

func shape(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)}
}

// ladder returns a group with two sizes. The larger size is four times the smaller size.
func ladder(id string, per config.Per) config.NodeGroup {
	b := base(id, per)
	b.Shape, b.Sizes = nil, []config.Size{{Name: "small", Shape: shape("2", "4Gi")},
		{Name: "large", Shape: shape("8", "16Gi")}}
	return b
}

// Groups per size are derived from the config alone, without a market.
func TestSizesDeriveOneGroupEach(t *testing.T) {
	specs := (&Groups{}).Expand([]config.NodeGroup{base("plain", ""), ladder("burst", "")})
	require.Equal(t, []string{"plain", "burst-small", "burst-large"}, ids(specs))
	small, large := specs[1], specs[2]
	require.Equal(t, []int{1, 10}, []int{small.Min, small.Max})
	require.Equal(t, shape("8", "16Gi"), large.Shape)
	require.Equal(t, []float64{1, 4}, []float64{small.PriceFactor, large.PriceFactor})
	require.Equal(t, map[string]string{"tier": "burst"}, large.Labels)
	require.Equal(t, ids(specs[1:]), ids((&Groups{}).Expand([]config.NodeGroup{ladder("burst", config.PerAny)})))
}

func TestSizesAndProvidersDeriveOneGroupEach(t *testing.T) {
	w := newWorld(offer("milan", "north", 2), offer("turin", "south", 1))
	g := w.groups()
	specs := g.Expand([]config.NodeGroup{ladder("b", config.PerProvider), ladder("r",
		"label:topology.kubernetes.io/region")})
	require.Equal(t, []string{"b-large-milan", "b-large-turin", "b-small-milan", "b-small-turin", "r-large-north",
		"r-large-south", "r-small-north", "r-small-south"}, ids(specs))
	large := specs[0]
	require.Equal(t, "milan", large.Provider)
	require.Equal(t, shape("8", "16Gi"), large.Shape)
	require.Equal(t, "north", large.Labels["topology.kubernetes.io/region"])
	require.Equal(t, []int{1, 10}, []int{large.Min, large.Max})
	require.InDelta(t, 4, large.PriceFactor, 1e-9)

	for name, configured := range map[string][]config.NodeGroup{
		"a size that goes": {func() config.NodeGroup {
			l := ladder("b",
				config.PerProvider)
			l.Sizes = l.Sizes[:1]
			return l
		}()},
		"no sizes": {base("b", config.PerProvider)},
	} {
		for _, s := range g.Expand(configured) {
			require.NotContains(t, s.ID, "large", name)
		}
	}
}

func TestPriceFactorFollowsTheSize(t *testing.T) {
	l := ladder("b", "")
	l.PriceFactor = 2
	l.Sizes = append(l.Sizes, config.Size{Name: "huge", Shape: shape("32", "64Gi"), PriceFactor: 3})
	specs := l.Bases()
	require.Equal(t, []float64{2, 8, 3}, []float64{specs[0].PriceFactor, specs[1].PriceFactor, specs[2].PriceFactor})
	tenth := fleet.Offer{Price: 0.1}
	require.InDelta(t, 0.8, choice.Price(specs[1].InstanceSpec, tenth), 1e-9)
	require.InDelta(t, 0.1, choice.Price(base("b", "").Bases()[0].InstanceSpec, tenth), 1e-9,
		"without a factor it is the offer's")
}

// CA splits a scale-out evenly between groups that it balances, so it must not balance groups of different sizes.
func TestSizesDoNotBalance(t *testing.T) {
	l := ladder("b", "")
	l.Labels = map[string]string{fleet.LabelBalance: "web"}
	specs := l.Bases()
	require.Equal(t, []string{"web-small", "web-large"}, []string{specs[0].Labels[fleet.LabelBalance],
		specs[1].Labels[fleet.LabelBalance]})
	require.Equal(t, "web", l.Labels[fleet.LabelBalance])
}

// An offer disappears and returns every five seconds. The groups of all sizes stay the same.
func TestFlappingOfferChangesNoSizes(t *testing.T) {
	w := newWorld(offer("milan", "north", 2), offer("turin", "south", 1))
	g, all, configured := w.groups(), w.Offers, []config.NodeGroup{ladder("b", config.PerProvider)}
	first := g.Expand(configured)
	require.Len(t, first, 4)
	for n := range 120 {
		w.now = w.now.Add(5 * time.Second)
		w.Offers = all[n%2:]
		require.Equal(t, first, g.Expand(configured))
	}
}
