package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/boundpod"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/registry"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/observer"
)

var (
	descPods = prometheus.NewDesc(registry.Namespace+"_pods_not_running",
		"Pods that are bound to a virtual node of the provider and have not run there for a minute, by verdict: "+
			"RefusedByProvider, HoldsNoQuota, PendingOnProvider, NotStarting, Restarting. Exported by the worker that ran the "+
			"last round of the observer.", []string{"provider", "verdict"}, nil)
	descOverdue = prometheus.NewDesc(registry.Namespace+"_pods_overdue",
		"Pods that are bound to a virtual node of the provider and have not run there for the budgets.podStart of their "+
			"node group, by verdict.", []string{"provider", "verdict"}, nil)
)

// NewPods registers the metrics of pods that do not run on their virtual nodes. It calls the function `read` at each
// scrape. The function returns false when another worker has run the observer's last rounds; then no series are
// exported. A provider without such pods has no series.
func NewPods(reg prometheus.Registerer, read func(now time.Time) ([]observer.PodsWaiting, bool)) error {
	type counts map[boundpod.Verdict]observer.PodsWaiting
	return reg.Register(collector{[]*prometheus.Desc{descPods, descOverdue}, func(out chan<- prometheus.Metric) {
		rows, _ := read(time.Now())
		by := map[string]counts{}
		for _, row := range rows {
			if by[row.Provider] == nil {
				by[row.Provider] = counts{}
			}
			sum := by[row.Provider][row.Verdict]
			sum.Count, sum.Overdue = sum.Count+row.Count, sum.Overdue+row.Overdue
			by[row.Provider][row.Verdict] = sum
		}
		for _, provider := range limited(by) {
			for _, verdict := range boundpod.Verdicts {
				n := by[provider][verdict]
				out <- prometheus.MustNewConstMetric(descPods, prometheus.GaugeValue, float64(n.Count), provider, string(verdict))
				out <- prometheus.MustNewConstMetric(descOverdue, prometheus.GaugeValue, float64(n.Overdue), provider,
					string(verdict))
			}
		}
	}})
}
