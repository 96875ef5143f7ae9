package choice_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/choice"
)

// BenchmarkChoose compares a choice among 10,000 offers with a sort of as many prices. The cases are: offers with
// different prices, offers with one price, and a choice by weights with 50 instances ahead. It prints BENCH <name>
// <value> <unit> <ratio> <against>.
func BenchmarkChoose(b *testing.B) {
	const n = 10_000
	for name, c := range map[string]struct {
		spec fleet.InstanceSpec
		rank choice.Rank
		each float64
	}{
		"by-price": {spec: chooseSpec, each: 1},
		"of-equal": {spec: chooseSpec, rank: choice.Rank{Name: "edge"}},
		"by-weight": {spec: weighing(fleet.Selection{Price: 1, Spread: 0.5, Latency: 0.5}), each: 1,
			rank: choice.Rank{Name: "edge", Ahead: 50}},
	} {
		b.Run(name, func(b *testing.B) {
			candidates, prices := make([]choice.Candidate, n), make([]float64, n)
			for i := range candidates {
				prices[i] = float64(i*7919%n) / n
				candidates[i] = candidate(fmt.Sprintf("p%d", i), c.each*prices[i])
			}
			var choose, bare []time.Duration
			for b.Loop() {
				began := time.Now()
				if choice.Choose(c.spec, candidates, nil, c.rank, chooseAt).Chosen == "" {
					b.Fatal("nothing is chosen")
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
			fmt.Printf("BENCH choose-of-%d-%s-p50 %.2f ms %.2f sort-of-prices\n", n, name, p50.Seconds()*1000,
				p50.Seconds()/base.Seconds())
		})
	}
}
