package fleet_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// BenchmarkChoose chooses among 10,000 offers, beside sorting as many prices. Prints BENCH <name> <value> <unit> <ratio>
// <against>.
func BenchmarkChoose(b *testing.B) {
	const n = 10_000
	candidates, prices := make([]fleet.Candidate, n), make([]float64, n)
	for i := range candidates {
		prices[i] = float64(i*7919%n) / n
		candidates[i] = candidate(fmt.Sprintf("p%d", i), prices[i])
	}
	var choose, bare []time.Duration
	for b.Loop() {
		began := time.Now()
		if fleet.Choose(chooseSpec, candidates, nil, fleet.Rank{}, chooseAt).Chosen != "p0" {
			b.Fatal("the cheapest is p0")
		}
		choose = append(choose, time.Since(began))
		sorted := slices.Clone(prices)
		began = time.Now()
		slices.Sort(sorted)
		bare = append(bare, time.Since(began))
	}
	slices.Sort(choose)
	slices.Sort(bare)
	p50, base := choose[len(choose)/2], bare[len(bare)/2]
	fmt.Printf("BENCH choose-of-%d-p50 %.2f ms %.2f sort-of-prices\n", n, p50.Seconds()*1000, p50.Seconds()/base.Seconds())
}
