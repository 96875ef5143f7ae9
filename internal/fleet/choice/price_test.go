package choice_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/choice"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

type prices = map[corev1.ResourceName]float64

func TestNodePriceByNodeAndByResource(t *testing.T) {
	shape := amounts("cpu", "2500m", "memory", "4Gi", "pods", "110", "ephemeral-storage", "10Gi", "nvidia.com/gpu", "2",
		"hugepages-2Mi", "512Mi", "intel.com/gpu", "0")
	for name, c := range map[string]struct {
		factor, price float64
		prices        prices
		want          float64
	}{
		"no price":                 {want: 0},
		"per node":                 {price: 0.5, want: 0.5},
		"per node, with a factor":  {price: 0.5, factor: 3, want: 1.5},
		"cpu":                      {prices: prices{"cpu": 0.04}, want: 0.1},
		"memory per GiB":           {prices: prices{"memory": 0.25}, want: 1},
		"storage per GiB":          {prices: prices{"ephemeral-storage": 0.01}, want: 0.1},
		"huge pages per GiB":       {prices: prices{"hugepages-2Mi": 1}, want: 0.5},
		"others per unit":          {prices: prices{"nvidia.com/gpu": 1.2, "pods": 0.01}, want: 3.5},
		"all together":             {prices: prices{"cpu": 0.04, "memory": 0.25, "nvidia.com/gpu": 1.2}, want: 3.5},
		"a factor is per node's":   {prices: prices{"cpu": 0.04}, factor: 3, want: 0.1},
		"per node wins":            {price: 0.5, prices: prices{"cpu": 0.04}, factor: 3, want: 1.5},
		"what the shape has not":   {prices: prices{"amd.com/gpu": 1}, want: 0},
		"none, beyond price":       {prices: prices{"intel.com/gpu": math.Inf(1)}, want: 0},
		"for nothing":              {prices: prices{"cpu": 0}, want: 0},
		"beyond what is accepted":  {prices: prices{"cpu": math.Inf(1)}, want: choice.MaxPrice},
		"no number":                {prices: prices{"cpu": math.NaN()}, want: choice.MaxPrice},
		"negative":                 {prices: prices{"cpu": -1}, want: 0},
		"beyond it, with a factor": {price: math.MaxFloat64, factor: 10, want: choice.MaxPrice},
	} {
		t.Run(name, func(t *testing.T) {
			spec := fleet.InstanceSpec{Shape: shape, PriceFactor: c.factor}
			require.InDelta(t, c.want, choice.Price(spec, fleet.Offer{Price: c.price, Prices: c.prices}), 1e-9)
		})
	}
	huge := fleet.InstanceSpec{Shape: amounts("cpu", "1e9999", "memory", "4Gi")}
	require.InDelta(t, choice.MaxPrice, choice.Price(huge, fleet.Offer{Prices: prices{"cpu": choice.MaxUnitPrice}}), 0)
	require.InDelta(t, 0.5, choice.Price(huge, fleet.Offer{Prices: prices{"cpu": 0, "memory": 0.125}}), 0,
		"nothing times a lot")
}

// Offers with the same price alternate, so the computed price of an offer must be exactly the same each time.
func TestPriceOfAnOfferIsStable(t *testing.T) {
	spec := fleet.InstanceSpec{Shape: amounts("cpu", "3", "memory", "7Gi", "pods", "110", "ephemeral-storage", "11Gi",
		"nvidia.com/gpu", "1")}
	offer := fleet.Offer{Prices: prices{"cpu": 0.1, "memory": 0.7, "pods": 1e-7, "ephemeral-storage": 0.3,
		"nvidia.com/gpu": 1e5}}
	first := choice.Price(spec, offer)
	for range testkit.Cases(t) {
		require.Equal(t, math.Float64bits(first), math.Float64bits(choice.Price(spec, offer)))
	}
}

// The shape of the group decides which offer is the cheapest.
func TestCheapestOfferDependsOnTheShape(t *testing.T) {
	candidates := func() []choice.Candidate {
		byResource := candidate("b", 0, func(c *choice.Candidate) {
			c.Offer.Prices = prices{"cpu": 0.03, "memory": 0.004}
		})
		return []choice.Candidate{candidate("a", 0.2), byResource}
	}
	for name, c := range map[string]struct {
		shape  corev1.ResourceList
		factor float64
		want   string
		reason string
	}{
		"small": {shape: amounts("cpu", "2", "memory", "4Gi", "pods", "50"), want: "b", reason: "fits at price 0.076 USD"},
		"large": {shape: amounts("cpu", "8", "memory", "16Gi", "pods", "50"), want: "a", reason: "fits at price 0.2 USD"},
		"large, at twice the price": {shape: amounts("cpu", "8", "memory", "16Gi", "pods", "50"), factor: 2, want: "b",
			reason: "fits at price 0.304 USD"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := chooseSpec
			spec.Shape, spec.PriceFactor = c.shape, c.factor
			d := choice.Choose(spec, candidates(), nil, choice.Rank{}, chooseAt)
			require.Equal(t, c.want, d.Chosen)
			require.Equal(t, c.reason, d.Assessments[0].Reason)
			matching := choice.Matching(spec, candidates(), chooseAt.Add(time.Second))
			require.Equal(t, c.want, matching[0].Provider)
		})
	}
}
