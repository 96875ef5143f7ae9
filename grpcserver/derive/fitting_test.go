package derive

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver/config"
)

const gpu = "nvidia.com/gpu"

func withGPUs(o market.Offer, n string) market.Offer {
	o.Lendable = o.Lendable.DeepCopy()
	o.Lendable[gpu] = resource.MustParse(n)
	o.Free = o.Lendable
	return o
}

func learning() config.NodeGroup {
	spec := base("ml", config.PerProvider)
	spec.Shape[gpu] = resource.MustParse("1")
	return spec
}

// Fifty-five cheap providers lack a GPU or enough CPUs. They do not displace the five providers that can have nodes of
// the group.
func TestUnfitProvidersDisplaceNoFitProvider(t *testing.T) {
	var able []string
	w := newWorld()
	for n := range 55 {
		cheap := offer(fmt.Sprintf("cheap%02d", n), "north", 0.1)
		if n%2 == 0 {
			cheap = withGPUs(cheap, "4")
			cheap.Lendable["cpu"] = resource.MustParse("1")
		}
		w.Offers = append(w.Offers, cheap)
	}
	for n := range 5 {
		w.Offers = append(w.Offers, withGPUs(offer(fmt.Sprintf("gpu%d", n), "north", 2), "4"))
		able = append(able, fmt.Sprintf("ml-gpu%d", n))
	}
	g := w.groups()
	require.Equal(t, able, ids(g.Expand([]config.NodeGroup{learning()})))
	require.Empty(t, g.Refused())
}

// A measured offer contains only the capacity that other workloads leave free. While this capacity is too small for a
// node, the offer's group stays as long as the group of an offer that has disappeared. The group returns when the
// capacity is large enough again.
func TestGroupOfAFullMeasuredOfferLingers(t *testing.T) {
	free, full := withGPUs(offer("milan", "north", 2), "4"), offer("milan", "north", 2)
	w := newWorld(free)
	g := w.groups()
	listed := func() []string { return ids(g.Expand([]config.NodeGroup{learning()})) }
	require.Len(t, listed(), 1)
	w.Offers, w.now = []market.Offer{full}, w.now.Add(Linger)
	require.Len(t, listed(), 1)
	w.now = w.now.Add(time.Second)
	require.Empty(t, listed())
	w.Offers = []market.Offer{free}
	require.Len(t, listed(), 1)
}

// Existing nodes leave less free capacity on a provider than another node needs. The provider is full, but large
// enough for a node, so its group exists.
func TestProviderFullOfHoldsKeepsItsGroup(t *testing.T) {
	taken := withGPUs(offer("milan", "north", 2), "4")
	taken.Free = corev1.ResourceList{}
	require.Len(t, newWorld(taken).groups().Expand([]config.NodeGroup{learning()}), 1)
}
