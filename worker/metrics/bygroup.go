package metrics

import (
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/registry"
)

// byGroup registers a gauge with one series for each node group. It calls the function `read` at each scrape.
func byGroup(reg prometheus.Registerer, name, help string, read func() map[string]int) error {
	desc := prometheus.NewDesc(registry.Namespace+name, help, []string{"group"}, nil)
	return reg.Register(collector{[]*prometheus.Desc{desc}, func(out chan<- prometheus.Metric) {
		counts := read()
		for _, group := range slices.Sorted(maps.Keys(counts)) {
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(counts[group]), group)
		}
	}})
}

// NewDiffering registers the metric of Nodes that differ from the template that Cluster Autoscaler received. Every
// worker counts all Nodes.
func NewDiffering(reg prometheus.Registerer, read func() map[string]int) error {
	return byGroup(reg, "_nodes_different",
		"Ready Nodes whose labels, taints or size differ from the template that Cluster Autoscaler received. Each worker "+
			"counts all these Nodes; absent for a group without Nodes.", read)
}
