//go:build externalgrpc

package inprocess

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	caconfig "k8s.io/autoscaler/cluster-autoscaler/config"
)

// sized returns a group with two sizes. The small size has the shape that all worlds use, and the large size is four
// times as large. A large node costs factor times as much as a small node; 0 means a price in proportion to the size.
func sized(factor float64, more string) string {
	return fmt.Sprintf("- {id: burst%s, sizes: [{name: small}, {name: large, shape: {cpu: 8, memory: 16Gi}, "+
		"priceFactor: %v}]}", more, factor)
}

func asks(cpu string) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) { s.Containers[0].Resources.Requests["cpu"] = resource.MustParse(cpu) }
}

// A pod fits only on the large size. CA requests exactly one large node from zero, with each of its expanders.
func TestPodThatFitsOnlyTheLargeSizeGetsIt(t *testing.T) {
	for name, change := range map[string]func(*caconfig.AutoscalingOptions){
		"as shipped": func(*caconfig.AutoscalingOptions) {}, "price": byPrice, "grpc": byGRPC,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, sized(0, ""), offers(offer("milan", "north", 8, 0.1)), change)
			w.pods("web", 1, asks("7"))
			require.Equal(t, []string{"burst-large +1"}, w.loops(10))
			require.Equal(t, []string{"burst-large", "burst-small"}, w.listed())
			require.Equal(t, 1, w.nodesOf("milan"))
			require.Zero(t, w.pending())
		})
	}
}

// When several sizes fit, CA takes the size that its expander prefers for the waiting pods. The price expander also
// prefers larger nodes in a larger cluster.
func TestExpandersChooseTheSize(t *testing.T) {
	asShipped := func(*caconfig.AutoscalingOptions) {}
	for name, c := range map[string]struct {
		change   func(*caconfig.AutoscalingOptions)
		machines int     // machines in addition to the first
		factor   float64 // price factor of the large size
		pods     int     // pods of 2 CPU
		want     string
	}{
		"price, one pod":                       {byPrice, 0, 0, 1, "burst-small +1"},
		"price, four pods":                     {byPrice, 0, 0, 4, "burst-small +4"},
		"price, four pods, in a large cluster": {byPrice, 30, 0, 4, "burst-large +1"},
		"grpc, one pod":                        {byGRPC, 0, 3, 1, "burst-small +1"},
		"grpc, two pods":                       {byGRPC, 0, 3, 2, "burst-small +2"},
		"grpc, four pods":                      {byGRPC, 0, 3, 4, "burst-large +1"},
		"grpc, eight pods":                     {byGRPC, 0, 3, 8, "burst-large +2"},
		"grpc, four pods, at 5 times as much":  {byGRPC, 0, 5, 4, "burst-small +4"},
		"as shipped, one pod":                  {asShipped, 0, 0, 1, "burst-small +1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, sized(c.factor, ""), offers(offer("milan", "north", 32, 0.1)), c.change)
			w.machines(c.machines)
			w.pods("web", c.pods)
			require.Equal(t, []string{c.want}, w.loops(3))
			require.Zero(t, w.pending())
		})
	}
}

func TestSizeOnTheSelectedProvider(t *testing.T) {
	w := newWorld(t, sized(0, ", per: provider"), offers(offer("milan", "north", 8, 1), offer("turin", "south", 8, 2)))
	w.pods("web", 1, asks("7"), selecting(region, "south"))
	require.Equal(t, []string{"burst-large-turin +1"}, w.loops(10))
	require.Equal(t, []string{"burst-large-milan", "burst-large-turin", "burst-small-milan", "burst-small-turin"},
		w.listed())
	require.Equal(t, 1, w.nodesOf("turin"))
}

// The sizes share the capacity of an offer. CA immediately sees how much capacity one size leaves for the other, and
// requests no more than this.
func TestSizesShareTheRoom(t *testing.T) {
	w := newWorld(t, sized(0, ""), offers(offer("milan", "north", 6, 1)))
	w.pods("large", 2, asks("7"))
	require.Equal(t, []string{"burst-large +1"}, w.loops(4))
	w.pods("small", 3)
	require.Equal(t, []string{"burst-small +2"}, w.loops(4), "and not the last one, nor another large node")
	require.Equal(t, 2, w.pending())
	require.Equal(t, map[string]int{"burst-large": 1, "burst-small": 2}, w.targets())
}

// With the balancing label, CA splits a scale-out between the providers' groups of one size, and never between sizes.
func TestScaleOutIsSplitWithinOneSize(t *testing.T) {
	label := ", per: provider, labels: {" + fleet.LabelBalance + ": web}"
	w := newWorld(t, sized(0, label), offers(offer("milan", "north", 16, 1), offer("turin", "south", 16, 1)), byPrice)
	w.pods("large", 4, asks("7"))
	require.ElementsMatch(t, []string{"burst-large-milan +2", "burst-large-turin +2"}, w.loops(3))
	w.pods("small", 4)
	require.ElementsMatch(t, []string{"burst-small-milan +2", "burst-small-turin +2"}, w.loops(3))
	require.Zero(t, w.pending())
}
