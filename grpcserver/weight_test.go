package grpcserver

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

const hugePages = "hugepages-2Mi"

func TestWeightOfResources(t *testing.T) {
	for name, c := range map[string]struct {
		resources map[corev1.ResourceName]string
		want      float64
	}{
		"cpu and memory":     {map[corev1.ResourceName]string{"cpu": "4", "memory": "16Gi"}, 0.184},
		"huge pages, by GiB": {map[corev1.ResourceName]string{"cpu": "4", "memory": "14Gi", hugePages: "2Gi"}, 0.184},
		"a GPU":              {map[corev1.ResourceName]string{"nvidia.com/gpu": "1"}, 1},
		"what costs nothing": {map[corev1.ResourceName]string{"pods": "110", "ephemeral-storage": "20Gi"}, 0},
	} {
		list := corev1.ResourceList{}
		for resourceName, amount := range c.resources {
			list[resourceName] = resource.MustParse(amount)
		}
		require.InDelta(t, c.want, Weight(list), 1e-9, name)
	}
}

// withHugePages adds huge pages to all offers of the market.
func (m *fakeMarket) withHugePages(amount string) {
	m.set(func() {
		for _, o := range m.Offers {
			o.Lendable[hugePages] = resource.MustParse(amount)
			o.Free[hugePages] = o.Lendable[hugePages]
		}
	})
}

// A group with huge pages does not change the price of pods without huge pages.
func TestHugePagesDoNotChangeOtherPrices(t *testing.T) {
	price := func(specs ...fleet.GroupSpec) float64 {
		f, m := newFake(), &fakeMarket{}
		m.nodes("milan", 2, 0.2)
		m.withHugePages("8Gi")
		return onMarket(t, f, m, specs...).podPrice(corev1.ResourceList{"cpu": resource.MustParse("2"),
			"memory": resource.MustParse("4Gi")})
	}
	db := spec("db", 0, 5)
	db.Shape[hugePages] = resource.MustParse("1Gi")
	require.InEpsilon(t, price(spec("web", 0, 5)), price(spec("web", 0, 5), db), 0.5)
}

// One option is an expensive node with huge pages, for a tiny pod that uses a few huge pages. The other option is a
// cheap node that is full of pods. The expander chooses the cheap node.
func TestFewHugePagesDoNotJustifyAnExpensiveNode(t *testing.T) {
	m := &fakeMarket{}
	m.nodes("milan", 20, 1)
	m.nodes("turin", 20, 1000)
	m.withHugePages("80Gi")
	db := spec("db", 0, 5)
	db.Provider, db.Shape[hugePages] = "turin", resource.MustParse("1Gi")
	tiny := optionOf(t, "db", 1, false, "100m")
	tiny.Pod[0].Spec.Containers[0].Resources.Requests[hugePages] = resource.MustParse("2Mi")
	best, err := pickOption(t, expanderSite(t, m, db), optionOf(t, "milan", 1, false, "4"), tiny)
	require.NoError(t, err)
	require.Equal(t, []string{"milan"}, best)
}

// Cluster Autoscaler sees the price of the most expensive offer that can have a node of the group. A node in creation
// reserves no more than this price.
func TestUnfitOffersDoNotChangePrices(t *testing.T) {
	f, m := newFake(), &fakeMarket{}
	m.nodes("gpu", 4, 2)
	m.nodes("plain", 4, 50)
	m.set(func() {
		m.Offers[0].Lendable["nvidia.com/gpu"] = resource.MustParse("4")
		m.Offers[0].Free["nvidia.com/gpu"] = resource.MustParse("4")
	})
	g := spends("ml", hourly(51))
	g.Shape["nvidia.com/gpu"] = resource.MustParse("1")
	c := onMarket(t, f, m, g)
	price, err := c.nodePrice("ml")
	require.NoError(t, err)
	require.InDelta(t, 4, price, 1e-9, "two hours")
	require.NoError(t, c.refresh())
	require.Equal(t, 4, c.max("ml"))
	require.NoError(t, c.increase("ml", 1))
	require.Equal(t, 2.0, f.published("ml").Cost.Reserved.Float())
	require.NoError(t, c.refresh())
	require.Equal(t, 4, c.max("ml"))
	require.NoError(t, c.increase("ml", 3))
}
