package metrics

import (
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// Conditions tells what is wrong with providers, as the last round of the comparison has it that this worker has run;
// nothing when others have run the last ones.
type Conditions struct {
	of func(now time.Time) map[string]string
}

var _ prometheus.Collector = (*Conditions)(nil)

var descCondition = prometheus.NewDesc(Namespace+"_provider_condition",
	"1 while the provider has the condition: new nodes go elsewhere. CredentialsRefused and ConsumerIsolated lose no "+
		"instance. Exported by the worker that ran the last round of the comparison.",
	[]string{"provider", "condition"}, nil)

// NewConditions makes the metric of conditions by provider, "" for none, and registers it.
func NewConditions(reg prometheus.Registerer, of func(now time.Time) map[string]string) (*Conditions, error) {
	c := &Conditions{of: of}
	return c, reg.Register(c)
}

// Describe implements prometheus.Collector.
func (c *Conditions) Describe(out chan<- *prometheus.Desc) { out <- descCondition }

// Collect implements prometheus.Collector. Known conditions that do not hold are exported as 0.
func (c *Conditions) Collect(out chan<- prometheus.Metric) {
	of := c.of(time.Now())
	providers := slices.Sorted(maps.Keys(of))
	for _, provider := range providers[:min(len(providers), MaxProviders)] {
		for _, condition := range fleet.Conditions {
			value := 0.0
			if of[provider] == condition {
				value = 1
			}
			out <- prometheus.MustNewConstMetric(descCondition, prometheus.GaugeValue, value, provider, condition)
		}
	}
}
