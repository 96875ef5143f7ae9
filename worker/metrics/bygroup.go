package metrics

import (
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// byGroup is a gauge of each node group, counted when it is asked for.
type byGroup struct {
	desc *prometheus.Desc
	of   func() map[string]int
}

// NewDiffering makes the metric of Nodes that are not as Cluster Autoscaler was told. Every worker watches all Nodes.
func NewDiffering(reg prometheus.Registerer, of func() map[string]int) error {
	return reg.Register(byGroup{of: of, desc: prometheus.NewDesc(Namespace+"_nodes_different",
		"Ready Nodes whose labels, taints or size differ from the template that Cluster Autoscaler was given. Each worker "+
			"counts all of them; absent for a group without Nodes.", []string{"group"}, nil)})
}

// NewMisjudged makes the metric of pods that Cluster Autoscaler misjudges.
func NewMisjudged(reg prometheus.Registerer, of func() map[string]int) error {
	return reg.Register(byGroup{of: of, desc: prometheus.NewDesc(Namespace+"_pods_misjudged",
		"Pending pods that select nodes by a label that differs among the providers of the node group, whose nodes Cluster "+
			"Autoscaler assumes to be alike. Exported by the worker that publishes the market; it checks at most "+
			"1,000 pods. Absent for a group without such pods.", []string{"group"}, nil)})
}

// Describe implements prometheus.Collector.
func (g byGroup) Describe(out chan<- *prometheus.Desc) { out <- g.desc }

// Collect implements prometheus.Collector.
func (g byGroup) Collect(out chan<- prometheus.Metric) {
	of := g.of()
	for _, group := range slices.Sorted(maps.Keys(of)) {
		out <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, float64(of[group]), group)
	}
}
