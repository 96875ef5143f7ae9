package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var descExpiry = prometheus.NewDesc(Namespace+"_provider_credentials_expiry_timestamp_seconds",
	"When the token or client certificate expires with which this worker has reached the provider within the last hour; "+
		"absent when they name no expiry.", []string{"provider"}, nil)

// NewExpiry registers the metric of when the credentials of providers end.
func NewExpiry(reg prometheus.Registerer, of func() map[string]time.Time) error {
	return reg.Register(collector{[]*prometheus.Desc{descExpiry}, func(out chan<- prometheus.Metric) {
		ends := of()
		for _, provider := range toldApart(ends) {
			out <- prometheus.MustNewConstMetric(descExpiry, prometheus.GaugeValue, float64(ends[provider].Unix()), provider)
		}
	}})
}
