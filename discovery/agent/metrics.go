package agent

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/prometheus/client_golang/prometheus"
)

// These constants are the results of a write of an offer, as values of a label.
const (
	put       = "put"
	withdrawn = "withdrawn"
	failed    = "failed"
)

// Metrics holds the Prometheus metrics of an agent.
type Metrics struct {
	writes, answers           *prometheus.CounterVec
	offered, granted, largest *prometheus.GaugeVec
}

// NewMetrics creates the metrics and registers them. Their names begin with namespace.
func NewMetrics(namespace string, registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "agent_writes_total",
			Help: "Writes of offers, by result: put, withdrawn or failed.",
		}, []string{"result"}),
		answers: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "agent_slices_total",
			Help: "ResourceSlices of class liqo-autoscaler that were answered, by reason.",
		}, []string{"reason"}),
		offered: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: namespace, Name: "agent_offered",
			Help: "The measured capacity of an offer, including the consumer's holds. It is also exported while the offer " +
				"cannot be published.",
		}, []string{"offer", "resource"}),
		granted: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: namespace, Name: "agent_granted",
			Help: "Resources granted to a consumer in this cluster, by ResourceSlices of any class.",
		}, []string{"consumer", "resource"}),
		largest: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: namespace, Name: "agent_largest_node",
			Help: "Free resources of the node with the most free CPU. A larger pod cannot start, even if the total is larger.",
		}, []string{"resource"}),
	}
	registry.MustRegister(m.writes, m.answers, m.offered, m.granted, m.largest)
	for _, result := range []string{put, withdrawn, failed} {
		m.writes.WithLabelValues(result)
	}
	for _, reason := range []string{reasonGranted, reasonFull, reasonInvalid, reasonUnknown, reasonRefusing,
		reasonLarger, reasonTooMany} {
		m.answers.WithLabelValues(reason)
	}
	return m
}

func (m *Metrics) wrote(result string) { m.writes.WithLabelValues(result).Inc() }

func (m *Metrics) answered(v Decision) { m.answers.WithLabelValues(v.Reason).Inc() }

// Measured sets the gauges to the result of a measurement: the offered amounts by offer, the granted amounts by
// consumer, and the free amounts of the largest node.
func (m *Metrics) Measured(offered, granted map[string]corev1.ResourceList, largest corev1.ResourceList) {
	for gauge, all := range map[*prometheus.GaugeVec]map[string]corev1.ResourceList{
		m.offered: offered, m.granted: granted,
	} {
		gauge.Reset()
		for whose, amounts := range all {
			for name, amount := range amounts {
				gauge.WithLabelValues(whose, string(name)).Set(amount.AsApproximateFloat64())
			}
		}
	}
	m.largest.Reset()
	for name, amount := range largest {
		m.largest.WithLabelValues(string(name)).Set(amount.AsApproximateFloat64())
	}
}
