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
	of   func(now time.Time) map[string]string
	left func(now time.Time) []fleet.Orphan
}

var _ prometheus.Collector = (*Conditions)(nil)

var descCondition = prometheus.NewDesc(Namespace+"_provider_condition",
	"1 while the provider has the condition: new nodes go elsewhere, except with NoRoomForGateway. CredentialsRefused "+
		"and ConsumerIsolated lose no instance. Exported by the worker that ran the last round of the comparison.",
	[]string{"provider", "condition"}, nil)

var descLeft = prometheus.NewDesc(Namespace+"_provider_leftovers",
	"Objects of this cluster on the provider that have no counterpart here, by kind: slices and peerings, which are "+
		"removed after ten minutes, and foreign ones, made by another cluster with this one's Liqo id, which are not. "+
		"Exported by the worker that ran the last round of the comparison.",
	[]string{"provider", "kind"}, nil)

// NewConditions makes the metrics of conditions by provider, "" for none, and of what is left there. It registers them.
func NewConditions(reg prometheus.Registerer, of func(now time.Time) map[string]string,
	left func(now time.Time) []fleet.Orphan) (*Conditions, error) {
	c := &Conditions{of: of, left: left}
	return c, reg.Register(c)
}

// Describe implements prometheus.Collector.
func (c *Conditions) Describe(out chan<- *prometheus.Desc) {
	out <- descCondition
	out <- descLeft
}

// Collect implements prometheus.Collector. Known conditions that do not hold are exported as 0; of a provider that has
// nothing left there is no series.
func (c *Conditions) Collect(out chan<- prometheus.Metric) {
	now := time.Now()
	of := c.of(now)
	if of != nil {
		c.collectLeft(out, now)
	}
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

func (c *Conditions) collectLeft(out chan<- prometheus.Metric, now time.Time) {
	type series struct{ provider, kind string }
	counts := map[series]int{}
	for _, o := range c.left(now) {
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
