package metrics

import (
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// Differing tells how many Nodes of each group are not as Cluster Autoscaler was told. Every worker watches all Nodes.
type Differing struct {
	of func() map[string]int
}

var _ prometheus.Collector = (*Differing)(nil)

var descDiffering = prometheus.NewDesc(Namespace+"_nodes_different",
	"Ready Nodes whose labels, taints or size are not those of the template that Cluster Autoscaler was told. Each "+
		"worker counts all; absent for a group without Nodes.", []string{"group"}, nil)

// NewDiffering makes the metric of counts by group, and registers it.
func NewDiffering(reg prometheus.Registerer, of func() map[string]int) (*Differing, error) {
	d := &Differing{of: of}
	return d, reg.Register(d)
}

// Describe implements prometheus.Collector.
func (d *Differing) Describe(out chan<- *prometheus.Desc) { out <- descDiffering }

// Collect implements prometheus.Collector.
func (d *Differing) Collect(out chan<- prometheus.Metric) {
	of := d.of()
	for _, group := range slices.Sorted(maps.Keys(of)) {
		out <- prometheus.MustNewConstMetric(descDiffering, prometheus.GaugeValue, float64(of[group]), group)
	}
}
