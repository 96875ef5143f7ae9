package metrics

import (
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Expiry tells when the credentials of providers end.
type Expiry struct {
	of func() map[string]time.Time
}

var _ prometheus.Collector = (*Expiry)(nil)

var descExpiry = prometheus.NewDesc(Namespace+"_provider_credentials_expiry_timestamp_seconds",
	"When the token or client certificate expires with which this worker has reached the provider within the last hour; "+
		"absent when they name no expiry.", []string{"provider"}, nil)

// NewExpiry makes the metric of ends by provider, and registers it.
func NewExpiry(reg prometheus.Registerer, of func() map[string]time.Time) (*Expiry, error) {
	e := &Expiry{of: of}
	return e, reg.Register(e)
}

// Describe implements prometheus.Collector.
func (e *Expiry) Describe(out chan<- *prometheus.Desc) { out <- descExpiry }

// Collect implements prometheus.Collector.
func (e *Expiry) Collect(out chan<- prometheus.Metric) {
	of := e.of()
	providers := slices.Sorted(maps.Keys(of))
	for _, provider := range providers[:min(len(providers), MaxProviders)] {
		out <- prometheus.MustNewConstMetric(descExpiry, prometheus.GaugeValue, float64(of[provider].Unix()), provider)
	}
}
