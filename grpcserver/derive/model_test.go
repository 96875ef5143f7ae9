package derive

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver/config"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// randomOffers returns offers that appear, disappear, are full, or are smaller than a node.
func randomOffers(r *rand.Rand) (all []market.Offer) {
	for n := range 8 {
		o := offer(fmt.Sprint("p", n), "north", 1+r.Float64())
		switch r.IntN(5) {
		case 0:
			continue
		case 1:
			o.Lendable = corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("16Gi")}
			o.Free, o.Price = o.Lendable, o.Price/10
		case 2:
			o.Free = corev1.ResourceList{"cpu": resource.MustParse("0"), "memory": resource.MustParse("0")}
		}
		all = append(all, o)
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// derivation is the model. It maps the id of each listed group to the time at which an offer for the group last
// existed.
type derivation map[string]time.Time

// follow repeats the work of Expand. It removes a group that was not offered for too long, and keeps every other
// listed group. Then it adds groups of the cheapest offers that are large enough for a node, up to the maximum.
func (d derivation) follow(w *world, most int) {
	if w.unknown {
		for id := range d {
			d[id] = w.now
		}
		return
	}
	maps.DeleteFunc(d, func(_ string, at time.Time) bool { return w.now.Sub(at) > Linger })
	able := slices.DeleteFunc(slices.Clone(w.Offers), func(o market.Offer) bool { return o.Lendable.Cpu().Value() < 2 })
	slices.SortFunc(able, func(a, b market.Offer) int {
		if a.Price < b.Price {
			return -1
		}
		return 1
	})
	for _, o := range able {
		id := "l-" + o.Provider
		if _, listed := d[id]; listed || len(d) < most {
			d[id] = w.now
		}
	}
}

// The derived groups equal the groups of the model while offers and prices change, the market is unknown, and the
// server restarts. The order of the offers does not change the groups.
func TestDerivedGroupsFollowTheModel(t *testing.T) {
	configured := []config.NodeGroup{base("l", config.PerProvider)}
	for r := range testkit.Cases(t) {
		w, model, most := newWorld(), derivation{}, 1+r.IntN(6)
		g := w.groups()
		g.Max = most
		for range 8 {
			w.now = w.now.Add(time.Duration(r.Int64N(int64(20 * time.Minute))))
			w.unknown = r.IntN(6) == 0
			w.Offers = randomOffers(r)
			model.follow(w, most)
			specs := g.Expand(configured)
			require.Equal(t, slices.Sorted(maps.Keys(model)), ids(specs))
			r.Shuffle(len(w.Offers), func(i, j int) { w.Offers[i], w.Offers[j] = w.Offers[j], w.Offers[i] })
			require.Equal(t, specs, g.Expand(configured))
			for _, s := range specs {
				require.Equal(t, s.ID, "l-"+s.Provider)
			}
			if r.IntN(5) == 0 { // another server starts, and the linger times of the groups start again
				g = w.restarted(specs)
				g.Max = most
				w.unknown = true
				model.follow(w, most)
				require.Equal(t, ids(specs), ids(g.Expand(configured)))
			}
		}
	}
}
