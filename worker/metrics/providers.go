package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/account"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/registry"
)

var descCondition = prometheus.NewDesc(registry.Namespace+"_provider_condition",
	"1 while the provider has the condition: the provider receives no new nodes, except with NoRoomForGateway. "+
		"CredentialsRefused and ConsumerIsolated lose no instance. Exported by the worker that ran the last round of the "+
		"observer.",
	[]string{"provider", "condition"}, nil)

var descLeft = prometheus.NewDesc(registry.Namespace+"_provider_leftovers",
	"Objects of this cluster on the provider that have no counterpart here, by kind. The observer removes the kinds "+
		"slice and peering after ten minutes. It does not remove the kind foreign: objects that another cluster with this "+
		"cluster's Liqo id made. Exported by the worker that ran the last round of the observer.",
	[]string{"provider", "kind"}, nil)

// NewConditions registers the metrics of the providers' conditions, and of the leftovers on providers. The function
// `read` returns each provider's condition from the observer's last round in this worker, and "" for a healthy
// provider. It returns nil when other workers have run the last rounds; then nothing is exported. Each provider has
// one series for each possible condition, with the value 0 or 1. A provider without leftovers has no series for
// leftovers.
func NewConditions(reg prometheus.Registerer, read func(now time.Time) map[string]string,
	left func(now time.Time) []fleet.Orphan) error {
	return reg.Register(collector{[]*prometheus.Desc{descCondition, descLeft}, func(out chan<- prometheus.Metric) {
		now := time.Now()
		conditions := read(now)
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
	"Time by which these credentials should have been renewed: a third of their lifetime before they expire, but at most "+
		"14 days before.",
	[]string{"provider"}, nil)

// NewExpiry registers the metrics of the expiry of the providers' credentials.
func NewExpiry(reg prometheus.Registerer, read func() map[string]account.Life) error {
	return reg.Register(collector{[]*prometheus.Desc{descExpiry, descLate}, func(out chan<- prometheus.Metric) {
		lives := read()
		for _, provider := range limited(lives) {
			gauge := func(desc *prometheus.Desc, at time.Time) {
				out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(at.Unix()), provider)
			}
			gauge(descExpiry, lives[provider].End)
			gauge(descLate, lives[provider].Late())
		}
	}})
}
