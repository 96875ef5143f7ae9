package grpcserver

import (
	"context"
	"path"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// metricsNamespace is the prefix of the names of all our metrics.
const metricsNamespace = "liqo_autoscaler"

// Metrics exports a Server's metrics to Prometheus. The metrics of groups come from the view, so a scrape causes no
// request to Temporal. The metrics of RPCs come from Interceptor. The values of labels are groups, phases, states,
// codes, methods, and the providers of existing instances. Instances are not values of labels.
type Metrics struct {
	server *Server
	rpcs   *prometheus.HistogramVec
}

var _ prometheus.Collector = (*Metrics)(nil)

// NewMetrics returns the metrics of a Server. Register them, and pass Interceptor to Serve.
func NewMetrics(s *Server) *Metrics {
	return &Metrics{server: s, rpcs: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: metricsNamespace, Name: "grpc_request_duration_seconds",
		Help: "Duration of Cluster Autoscaler's RPCs, by method and gRPC code.",
		// A read takes less than a millisecond, a mutation takes some milliseconds, and CA waits for at most 5 s.
		Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
	}, []string{"method", "code"})}
}

// Interceptor measures the duration of all RPCs except health checks.
func (m *Metrics) Interceptor() grpc.UnaryServerInterceptor {
	health := "/" + healthpb.Health_ServiceDesc.ServiceName + "/"
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		if strings.HasPrefix(info.FullMethod, health) {
			return handler(ctx, req)
		}
		began := time.Now()
		resp, err := handler(ctx, req)
		m.rpcs.WithLabelValues(path.Base(info.FullMethod), status.Code(err).String()).Observe(time.Since(began).Seconds())
		return resp, err
	}
}

// descs lists the descriptions of all metrics that the function desc has created.
var descs []*prometheus.Desc

func desc(name, help string, labels ...string) *prometheus.Desc {
	d := prometheus.NewDesc(prometheus.BuildFQName(metricsNamespace, "", name), help, labels, nil)
	descs = append(descs, d)
	return d
}

var (
	descMin     = desc("group_min_size", "Minimum size in the node group's config.", "group")
	descMax     = desc("group_max_size", "Maximum size in the node group's config.", "group")
	descOffered = desc("group_offered_max_size",
		"Maximum size that Cluster Autoscaler receives: lower than the config's if the limits or the offers allow less.",
		"group")
	descTarget    = desc("group_target_size", "Target size: the instances that count.", "group")
	descInstances = desc("instances", "Instances by phase, and by their state as Cluster Autoscaler sees it.", "group",
		"phase", "state")
	descStuck    = desc("instances_stuck", "Stuck instances: they wait for an operator or the next scale-in.", "group")
	descNotReady = desc("instances_not_ready", "Instances in phase Ready whose node is not ready.", "group")
	descFailed   = desc("instances_failed", "Failed instances that Cluster Autoscaler has not deleted yet, by code.",
		"group", "code")
	descProvider = desc("provider_instances", "Instances by the provider of their current attempt.", "provider")
	descAge      = desc("snapshot_age_seconds", "Seconds since the node group was last read or changed.", "group")
	descDirty    = desc("group_dirty", "1 while the outcome of an operation on the node group is unknown.", "group")
	descPaused   = desc("group_paused", "1 while the node group is paused and starts no instances.", "group")
	descFailing  = desc("group_drivers_fail",
		"1 while more than a tenth of the node group's scale-outs and scale-ins, and more than three, fail their workflow "+
			"tasks: the worker's build cannot continue these workflows, and they are not replaced.", "group")
	descStandby = desc("group_standby_peerings", "Peerings that the node group keeps ready by `standby`, by state.",
		"group", "state")
	descRetired = desc("group_retired",
		"1 when the node group is no longer configured, or waits for a new template, and is served until it is empty.",
		"group")
	descKept = desc("group_template_kept",
		"1 when the configured shape, labels or taints are not in force; liqo-autoscaler status shows the reason.", "group")
	descUnavailable = desc("group_unavailable",
		"1 when the node group could not be read, or did not accept its config, at the last refresh: Cluster Autoscaler "+
			"sees its last known state, and it neither grows nor shrinks; the log has the reason.", "group")
	descGivenUp = desc("group_provision_time_short",
		"1 when Cluster Autoscaler's max-node-provision-time is too short for the node group's budgets.total.", "group")
	descFresh = desc("view_fresh",
		"1 while the server is ready: its node groups were read within the last minute, and a worker polls their task queue.")
	descPolls = desc("worker_polls",
		"1 while a worker polls the task queue of this hub, as Temporal reports; 0 when no worker has polled it for "+
			"some seconds.")
	descNotDerived = desc("groups_not_derived",
		"Node groups that are not derived from the offers, because their id is taken or --max-derived-groups is reached.")
	descForeign = desc("offers_in_another_currency",
		"Offers that are not used because their price is not in the node groups' currency.")
	descBroken = desc("config_broken",
		"1 when the newest version of the config has errors and an older one is in force.")
	descConfigAt = desc("config_in_force_timestamp_seconds", "When the current config took effect.")
)

// Describe sends the descriptions of all metrics.
func (m *Metrics) Describe(out chan<- *prometheus.Desc) {
	for _, d := range descs {
		out <- d
	}
	m.rpcs.Describe(out)
}

// Collect sends the metrics that it computes from the view. It makes no request, and does not block.
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	m.rpcs.Collect(out)
	gauge(descFresh, bit(m.server.Ready() == nil))
	if m.server.polled != nil {
		gauge(descPolls, bit(m.server.unpolled.Load() == nil))
	}
	config := m.server.config.Load()
	gauge(descBroken, bit(config.broken != ""))
	gauge(descConfigAt, seconds(config.since))
	gauge(descForeign, float64(m.server.foreign.Load()))
	if d := m.server.derived; d != nil {
		gauge(descNotDerived, float64(len(d.Refused())))
	}
	r := m.server.roster.Load()
	providers := map[string]int{}
	for _, g := range r.list {
		t, message := g.terms.Load(), m.server.message(r, g)
		gauge(descMin, float64(message.GetMinSize()), g.id)
		gauge(descMax, float64(t.spec.Max), g.id)
		gauge(descOffered, float64(message.GetMaxSize()), g.id)
		gauge(descDirty, bit(g.isDirty()), g.id)
		gauge(descRetired, bit(t.retired), g.id)
		gauge(descKept, bit(t.kept != ""), g.id)
		gauge(descUnavailable, bit(g.unusable.Load() != nil), g.id)
		gauge(descGivenUp, bit(g.isGivenUpEarly()), g.id)
		if at := g.readAt.Load(); at != nil {
			gauge(descAge, max(0, time.Since(*at).Seconds()), g.id)
		}
		if p := g.picture.Load(); p != nil {
			collectPicture(p, gauge)
			m.server.collectCost(g, p, time.Now(), gauge)
			for _, i := range p.Instances {
				if i.Provider != "" {
					providers[i.Provider]++
				}
			}
		}
	}
	for provider, n := range providers {
		gauge(descProvider, float64(n), provider)
	}
}

// collectPicture exports metrics of one group's instances. For each known phase and failure code without instances it
// exports 0, so that alerts can detect an increase.
func collectPicture(p *picture, gauge func(d *prometheus.Desc, value float64, labels ...string)) {
	type where struct {
		phase fleet.Phase
		state fleet.State
	}
	phases, failed := map[where]int{}, map[fleet.Code]int{}
	for _, row := range fleet.Machine {
		if row.State != "" { // not the phase Released, which no instance has
			phases[where{row.Phase, row.State}] = 0
		}
	}
	for _, c := range fleet.Codes {
		failed[c] = 0
	}
	stuck, notReady := 0, 0
	for _, i := range p.Instances {
		phases[where{i.Phase, i.State}]++
		if i.Phase == fleet.Failed && i.Failure != nil {
			failed[i.Failure.Code]++
		}
		if i.Stuck != "" {
			stuck++
		}
		if i.NotReady && i.Phase == fleet.Ready {
			notReady++
		}
	}
	gauge(descTarget, float64(p.Target), p.Group)
	gauge(descPaused, bit(p.Paused), p.Group)
	gauge(descFailing, bit(p.Condition != ""), p.Group)
	gauge(descStandby, float64(p.Peered(fleet.HoldWaiting)), p.Group, string(fleet.HoldWaiting))
	gauge(descStandby, float64(p.Peered(fleet.HoldGranted)), p.Group, string(fleet.HoldGranted))
	gauge(descStuck, float64(stuck), p.Group)
	gauge(descNotReady, float64(notReady), p.Group)
	for w, n := range phases {
		gauge(descInstances, float64(n), p.Group, string(w.phase), string(w.state))
	}
	for code, n := range failed {
		gauge(descFailed, float64(n), p.Group, string(code))
	}
}

func bit(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func seconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }

var (
	descCostRate = desc("cost_per_hour", "Cost of the instances per hour now; instances without a known price are left "+
		"out.", "group", "provider", "currency")
	descCostTotal = desc("cost", "Cost of the instances since the start of the cost count of their node group. The value "+
		"can fall when a node group is read late: use delta(), not increase().", "group", "provider", "currency")
	descCostMonth = desc("cost_month", "Cost of the instances in this calendar month (UTC).", "group", "currency")
	descUnpriced  = desc("instances_unpriced", "Instances that cost an unknown amount: their offer had no price.", "group",
		"provider")
	descSpending = desc("spending_limit", "Limit of the node group's spending.", "group", "period", "level",
		"currency")
	descSpendReached = desc("spending_limit_reached", "1 while the limit of the node group's spending is reached.",
		"group", "period", "level")
)

// collectCost exports the costs of a group's instances.
func (s *Server) collectCost(g *group, p *picture, now time.Time,
	gauge func(d *prometheus.Desc, value float64, labels ...string)) {
	cost, _ := p.Cost.Until(now)
	for id, c := range cost.Providers {
		gauge(descCostRate, c.Rate.Float(), p.Group, id, cost.Currency)
		gauge(descCostTotal, c.Total.Float(), p.Group, id, cost.Currency)
		gauge(descUnpriced, float64(c.Unpriced), p.Group, id)
	}
	if cost.Currency != "" {
		gauge(descCostMonth, cost.ThisMonth().Float(), p.Group, cost.Currency)
	}
	for _, r := range s.reaches(g, now) {
		gauge(descSpending, r.Limit, p.Group, r.Period, r.Level, cost.Currency)
		gauge(descSpendReached, bit(r.Reached), p.Group, r.Period, r.Level)
	}
}
