package metrics

import (
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/registry"
)

// These constants name the clocks with which this worker's clock is compared.
const (
	ClockOfTemporal  = "temporal"
	ClockOfAPIServer = "api-server"
)

var descClock = prometheus.NewDesc(registry.Namespace+"_clock_ahead_seconds",
	"How far this worker's clock is ahead of another clock, as last measured; absent before the first measurement. Each "+
		"activity measures Temporal's clock, including the latency to the worker. Only the worker that leads measures the "+
		"API server's clock.", []string{"of"}, nil)

// Clocks stores the differences between this process's clock and other clocks, for metrics and diagnostics only. The
// zero value is empty, and safe for concurrent use.
type Clocks struct {
	mu    sync.Mutex
	ahead map[string]time.Duration
}

// Set saves a measured difference. The parameter ahead is negative if this process's clock is behind the other clock.
func (c *Clocks) Set(of string, ahead time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ahead == nil {
		c.ahead = map[string]time.Duration{}
	}
	c.ahead[of] = ahead
}

// Ahead returns all differences, by clock.
func (c *Clocks) Ahead() map[string]time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.ahead)
}

// Register registers the metric of the clock differences.
func (c *Clocks) Register(reg prometheus.Registerer) error {
	return reg.Register(collector{[]*prometheus.Desc{descClock}, func(out chan<- prometheus.Metric) {
		for of, ahead := range c.Ahead() {
			out <- prometheus.MustNewConstMetric(descClock, prometheus.GaugeValue, ahead.Seconds(), of)
		}
	}})
}
