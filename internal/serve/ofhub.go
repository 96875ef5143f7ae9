package serve

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// ofHub is a Gatherer that adds the label hub to each metric, including the metrics of libraries. The label
// distinguishes several hubs that run in one namespace.
type ofHub struct {
	prometheus.Gatherer
	hub string // "" adds no label
}

// Gather implements prometheus.Gatherer.
func (g ofHub) Gather() ([]*dto.MetricFamily, error) {
	families, err := g.Gatherer.Gather()
	if g.hub == "" {
		return families, err
	}
	name := "hub"
	for _, family := range families {
		for _, metric := range family.Metric {
			metric.Label = append(slices.Clone(metric.Label), &dto.LabelPair{Name: &name, Value: &g.hub})
			slices.SortFunc(metric.Label, func(a, b *dto.LabelPair) int { return strings.Compare(a.GetName(), b.GetName()) })
		}
	}
	return families, err
}
