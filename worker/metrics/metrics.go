// Package metrics defines Prometheus metrics of the worker: of steps, scale-outs, providers, pods, the observer and the
// Temporal SDK. The gRPC server defines its metrics of node groups itself.
//
// Names begin with liqo_autoscaler_, and values are in base units. Each label has a bounded set of values: steps,
// codes, groups, and at most MaxProviders providers. No label names an instance. The caller passes the registry; the
// package has no global registry.
package metrics

import (
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// collector implements prometheus.Collector: it computes its metrics at each scrape.
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

// limited returns the first MaxProviders providers in alphabetical order.
func limited[T any](of map[string]T) []string {
	providers := slices.Sorted(maps.Keys(of))
	return providers[:min(len(providers), MaxProviders)]
}
