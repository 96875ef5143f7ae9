// Package metrics is what the processes tell Prometheus, but for what the gRPC server knows of groups: how long steps
// take and how they fail, what the Temporal SDK measures, the Go runtime, and which version runs.
//
// Names begin with liqo_autoscaler_, units are base units. Labels are of bounded sets only: steps, codes, groups, and
// providers up to MaxProviders; never an instance. A registry belongs to one process; nothing here is global.
package metrics

import (
	"maps"
	"runtime"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// collector is a prometheus.Collector of metrics that are computed when they are asked for.
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

// toldApart are the first MaxProviders of the providers, in order.
func toldApart[T any](of map[string]T) []string {
	providers := slices.Sorted(maps.Keys(of))
	return providers[:min(len(providers), MaxProviders)]
}

// Namespace is the first part of the names of all our metrics.
const Namespace = "liqo_autoscaler"

// NewRegistry makes a process's registry, with the Go runtime, the process and the version in it.
func NewRegistry(version string) *prometheus.Registry {
	reg := prometheus.NewRegistry()
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: Namespace, Name: "build_info", Help: "The version that runs, as a label; always 1.",
		ConstLabels: prometheus.Labels{"version": version, "go_version": runtime.Version()},
	})
	info.Set(1)
	reg.MustRegister(info, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return reg
}
