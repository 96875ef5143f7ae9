package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/account"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/registry"
)

var descCondition = prometheus.NewDesc(registry.Namespace+"_provider_condition",
	"1 while the provider has the condition: new nodes go elsewhere, except with NoRoomForGateway. CredentialsRefused "+
		"and ConsumerIsolated lose no instance. Exported by the worker that ran the last round of the observer.",
	[]string{"provider", "condition"}, nil)

var descLeft = prometheus.NewDesc(registry.Namespace+"_provider_leftovers",
	"Objects of this cluster on the provider that have no counterpart in this cluster, by kind. The worker removes "+
		"slices and peerings after ten minutes. It keeps foreign objects, which another cluster with the same Liqo id "+
		"made. Exported by the worker that ran the last round of the observer.",
	[]string{"provider", "kind"}, nil)

// NewConditions registers the metrics of the conditions of providers and of the leftovers there. of returns the
// conditions from the last round of the observer in this worker, "" for a healthy provider; nil when other workers have
// run the last rounds. A known condition that does not hold is exported as 0. A provider without leftovers has no
// series.
func NewConditions(reg prometheus.Registerer, of func(now time.Time) map[string]string,
	left func(now time.Time) []fleet.Orphan) error {
	return reg.Register(collector{[]*prometheus.Desc{descCondition, descLeft}, func(out chan<- prometheus.Metric) {
		now := time.Now()
		conditions := of(now)
		if conditions != nil {
			collectLeft(out, left(now))
		}
		for _, provider := range limited(conditions) {
			for _, condition := range fleet.Conditions {
				value := 0.0
				if conditions[provider] == condition {
					value = 1
				}
				out <- prometheus.MustNewConstMetric(descCondition, prometheus.GaugeValue, value, provider, condition)
			}
		}
	}})
}

func collectLeft(out chan<- prometheus.Metric, left []fleet.Orphan) {
	type series struct{ provider, kind string }
	counts := map[series]int{}
	for _, o := range left {
		kind := "slice"
		switch {
		case o.Foreign:
			kind = "foreign"
		case o.OfPeering():
			kind = "peering"
		}
		counts[series{o.Attempt.Provider.ID, kind}]++
	}
	for s, n := range counts {
		out <- prometheus.MustNewConstMetric(descLeft, prometheus.GaugeValue, float64(n), s.provider, s.kind)
	}
}

var descExpiry = prometheus.NewDesc(registry.Namespace+"_provider_credentials_expiry_timestamp_seconds",
	"When the token or client certificate expires that this worker has used for the provider within the last hour; "+
		"absent if it has no expiry.", []string{"provider"}, nil)

var descLate = prometheus.NewDesc(registry.Namespace+"_provider_credentials_late_timestamp_seconds",
	"When the token or client certificate should have been renewed: a third of its life, or 14 days, before it expires.",
	[]string{"provider"}, nil)

// NewExpiry registers the metrics of the expiry of the providers' credentials.
func NewExpiry(reg prometheus.Registerer, of func() map[string]account.Life) error {
	return reg.Register(collector{[]*prometheus.Desc{descExpiry, descLate}, func(out chan<- prometheus.Metric) {
		lives := of()
		for _, provider := range limited(lives) {
			gauge := func(desc *prometheus.Desc, at time.Time) {
				out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(at.Unix()), provider)
			}
			gauge(descExpiry, lives[provider].End)
			gauge(descLate, lives[provider].Late())
		}
	}})
}
