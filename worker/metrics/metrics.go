// Package metrics exports the Prometheus metrics of the processes, except the gRPC server's metrics of groups: the
// durations and failures of steps, and the measurements of the Temporal SDK.
//
// Names begin with liqo_autoscaler_, units are base units. Labels come from bounded sets only: steps, codes, groups,
// and providers up to MaxProviders; never an instance. A registry belongs to one process; nothing here is global.
package metrics

import (
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// collector is a prometheus.Collector of metrics that are computed at each scrape.
type collector struct {
	descs   []*prometheus.Desc
	collect func(out chan<- prometheus.Metric)
}

// Describe implements prometheus.Collector.
func (c collector) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range c.descs {
		out <- desc
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) { c.collect(out) }

// limited returns the first MaxProviders of the providers, in order.
func limited[T any](of map[string]T) []string {
	providers := slices.Sorted(maps.Keys(of))
	return providers[:min(len(providers), MaxProviders)]
}
