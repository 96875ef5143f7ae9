//go:build externalgrpc

package inprocess

import (
	"testing"

	"github.com/stretchr/testify/require"

	caconfig "k8s.io/autoscaler/cluster-autoscaler/config"
)

func byPrice(o *caconfig.AutoscalingOptions) { o.ExpanderNames = "price" }

func TestS32PriceExpanderTakesTheCheapest(t *testing.T) {
	w := newWorld(t, "- {id: burst, per: provider}", offers(offer("milan", "north", 2, 0.3),
		offer("rome", "centre", 2, 0.1), offer("turin", "south", 2, 0.2)), byPrice)
	for n, group := range []string{"burst-rome", "burst-turin", "burst-milan"} { // real nodes have a price, too
		w.pods(group, 2)
		require.Equal(t, []string{group + " +2"}, w.loops(3), "round %d", n)
	}
	require.Zero(t, w.pending())
}

// When groups have no price, CA compares them by their size.
func TestS32PriceExpanderWithoutPrices(t *testing.T) {
	w := newWorld(t, "- {id: large, shape: {cpu: 8, memory: 16Gi}}\n- id: small",
		offers(offer("milan", "north", 8, 0)), byPrice)
	w.pods("web", 1)
	require.Equal(t, []string{"small +1"}, w.loops(3))
}
