// Package registry creates the Prometheus registry of a process. The registry contains the metrics that every process
// has: metrics of the Go runtime, of the operating system's process, and of the running version.
package registry

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Namespace is the first part of the names of all our metrics.
const Namespace = "liqo_autoscaler"

// New returns a new registry with the metrics that every process has.
func New(version string) *prometheus.Registry {
	reg := prometheus.NewRegistry()
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: Namespace, Name: "build_info", Help: "The running version, as a label; always 1.",
		ConstLabels: prometheus.Labels{"version": version, "go_version": runtime.Version()},
	})
	info.Set(1)
	reg.MustRegister(info, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return reg
}
