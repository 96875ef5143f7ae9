package derive

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/choice"
)

func shape(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)}
}

// ladder is a group with two sizes, the larger of them four times the smaller.
func ladder(id, per string) fleet.GroupSpec {
	b := base(id, per)
	b.Shape, b.Sizes = nil, []fleet.Size{{Name: "small", Shape: shape("2", "4Gi")},
		{Name: "large", Shape: shape("8", "16Gi")}}
	return b
}

// Sizes need no market.
func TestOneGroupForEachSize(t *testing.T) {
	specs := (&Groups{}).Expand([]fleet.GroupSpec{base("plain", ""), ladder("burst", "")})
	require.Equal(t, []string{"plain", "burst-small", "burst-large"}, ids(specs))
	small, large := specs[1], specs[2]
	require.Equal(t, []int{1, 10, 0}, []int{small.Min, small.Max, small.MinPerGroup})
	require.Equal(t, shape("8", "16Gi"), large.Shape)
	require.Equal(t, []float64{1, 4}, []float64{small.PriceFactor, large.PriceFactor})
	require.Nil(t, large.Sizes)
	require.Equal(t, map[string]string{"tier": "burst"}, large.Labels)
	require.Equal(t, ids(specs[1:]), ids((&Groups{}).Expand([]fleet.GroupSpec{ladder("burst", PerAny)})))
}

func TestOneGroupForEachSizeAndPlace(t *testing.T) {
	w := newWorld(offer("milan", "north", 2), offer("turin", "south", 1))
	g := w.groups()
	specs := g.Expand([]fleet.GroupSpec{ladder("b", PerProvider), ladder("r", "label:topology.kubernetes.io/region")})
	require.Equal(t, []string{"b-large-milan", "b-large-turin", "b-small-milan", "b-small-turin", "r-large-north",
		"r-large-south", "r-small-north", "r-small-south"}, ids(specs))
	large := specs[0]
	require.Equal(t, "milan", large.Provider)
	require.Equal(t, shape("8", "16Gi"), large.Shape)
	require.Equal(t, "north", large.Labels["topology.kubernetes.io/region"])
	require.Equal(t, []int{1, 10, 0}, []int{large.Min, large.Max, large.MinPerGroup})
	require.InDelta(t, 4, large.PriceFactor, 1e-9)

	for name, config := range map[string][]fleet.GroupSpec{
		"a size that goes": {func() fleet.GroupSpec { l := ladder("b", PerProvider); l.Sizes = l.Sizes[:1]; return l }()},
		"no sizes":         {base("b", PerProvider)},
	} {
		for _, s := range g.Expand(config) {
			require.NotContains(t, s.ID, "large", name)
		}
	}
}

// An id is made of the group's, the size and the value alone, whatever is cut.
func TestIDOfASize(t *testing.T) {
	require.Equal(t, "burst-small-milan", ID("burst", "small", "milan"))
	long := []string{ID("burst", "memory", "eu-west-1-a-long-name"), ID("burst", "memory", "eu-west-1-a-long-name-2"),
		ID("burst", "memory-eu", "west-1-a-long-name"), ID("burst", "memory-of-a-large-machine")}
	for i, id := range long {
		require.True(t, fleet.ValidGroupID(id), id)
		require.Equal(t, i, slices.Index(long, id), "%v", long)
	}
	require.Equal(t, "burst-memory-eu-we-", long[0][:19])
}

func TestPriceFactorOfASize(t *testing.T) {
	l := ladder("b", "")
	l.PriceFactor = 2
	l.Sizes = append(l.Sizes, fleet.Size{Name: "huge", Shape: shape("32", "64Gi"), PriceFactor: 3})
	specs := Sizes(l)
	require.Equal(t, []float64{2, 8, 3}, []float64{specs[0].PriceFactor, specs[1].PriceFactor, specs[2].PriceFactor})
	tenth := fleet.Offer{Price: 0.1}
	require.InDelta(t, 0.8, choice.Price(specs[1], tenth), 1e-9)
	require.InDelta(t, 0.1, choice.Price(base("b", ""), tenth), 1e-9, "without a factor it is the offer's")
}

// CA splits a scale-out evenly between groups that balance, so groups of different sizes do not.
func TestSizesDoNotBalance(t *testing.T) {
	l := ladder("b", "")
	l.Labels = map[string]string{fleet.LabelBalance: "web"}
	specs := Sizes(l)
	require.Equal(t, []string{"web-small", "web-large"}, []string{specs[0].Labels[fleet.LabelBalance],
		specs[1].Labels[fleet.LabelBalance]})
	require.Equal(t, "web", l.Labels[fleet.LabelBalance])
}

// An offer that comes and goes every five seconds changes no size's groups either.
func TestAnOfferThatFlapsUnderSizes(t *testing.T) {
	w := newWorld(offer("milan", "north", 2), offer("turin", "south", 1))
	g, all, config := w.groups(), w.Offers, []fleet.GroupSpec{ladder("b", PerProvider)}
	first := g.Expand(config)
	require.Len(t, first, 4)
	for n := range 120 {
		w.now = w.now.Add(5 * time.Second)
		w.Offers = all[n%2:]
		require.Equal(t, first, g.Expand(config))
	}
}
