package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/registry"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/observer"
)

var (
	descRound = prometheus.NewDesc(registry.Namespace+"_observer_last_round_timestamp_seconds",
		"When the last complete round of the observer began in this worker; 0 when none was complete. One worker of a hub "+
			"runs the rounds, so the highest value counts. A round during a pause of the observer also counts.", nil, nil)
	descTook = prometheus.NewDesc(registry.Namespace+"_observer_last_round_duration_seconds",
		"How long the last complete round of this worker took.", nil, nil)
	descUnread = prometheus.NewDesc(registry.Namespace+"_observer_unread_entities",
		"Node groups and providers that the last round of this worker could not read from Temporal; the round skipped all "+
			"their objects.", nil, nil)
)

// NewRounds registers the metrics of the observer's rounds.
func NewRounds(reg prometheus.Registerer, read func() observer.Progress) error {
	return reg.Register(collector{[]*prometheus.Desc{descRound, descTook, descUnread}, func(out chan<- prometheus.Metric) {
		p, at := read(), 0.0
		if !p.Complete.IsZero() {
			at = float64(p.Complete.UnixMilli()) / 1000
		}
		out <- prometheus.MustNewConstMetric(descRound, prometheus.GaugeValue, at)
		out <- prometheus.MustNewConstMetric(descTook, prometheus.GaugeValue, p.Took.Seconds())
		out <- prometheus.MustNewConstMetric(descUnread, prometheus.GaugeValue, float64(p.Unread))
	}})
}
