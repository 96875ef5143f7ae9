package agent

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/leader"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/reload"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// Options configures an Agent. All fields except GrantsSlices and Sink are required.
type Options struct {
	Kube    kubernetes.Interface
	Objects dynamic.Interface
	// Config is the configuration file. The agent checks the file for changes at each round of writes and at each
	// round of answers.
	Config *reload.Files[Config]
	// Sink receives the offers. If it is nil, the agent publishes them in the consumers' tenant namespaces.
	Sink Sink
	// GrantsSlices reports whether the agent answers the ResourceSlices with the class Class.
	GrantsSlices bool
	// Namespace is the namespace of the Lease that selects the leader among several agents.
	Namespace string
	// LiqoNamespace is the namespace in which Liqo runs. The record of grants is in this namespace.
	LiqoNamespace string
	Metrics       *Metrics
	Log           *slog.Logger
}

// Lease is the name of the Lease that the leading agent holds.
const Lease = "liqo-autoscaler-agent"

// Agent measures the cluster and publishes offers.
type Agent struct {
	options    Options
	cluster    *Cluster
	advertiser *Advertiser
}

// OpenConfig reads the file for the first time. It returns an error if the file has faults.
func OpenConfig(path string) (*reload.Files[Config], error) {
	return reload.Open(func(contents [][]byte) (Config, error) { return Parse(contents[0]) }, path)
}

// New returns an Agent. It makes no request.
func New(options Options) (*Agent, error) {
	var grants *record
	if options.GrantsSlices {
		grants = &record{kube: options.Kube, namespace: options.LiqoNamespace}
	}
	cluster, err := Watch(options.Kube, options.Objects, grants, options.Log)
	if err != nil {
		return nil, err
	}
	a := &Agent{options: options, cluster: cluster}
	if options.Sink == nil {
		options.Sink = &Tenants{Kube: options.Kube, Config: a.config}
	}
	a.advertiser = &Advertiser{Sink: options.Sink, Offers: a.offers, Changed: cluster.changed, Metrics: options.Metrics,
		Log: options.Log}
	return a, nil
}

// Run calls Work whenever this agent holds the Lease, until ctx ends. When ctx ends or the Lease is lost, the agent
// withdraws the offers. So no offer stays published while no agent measures it.
func (a *Agent) Run(ctx context.Context) {
	var watching sync.WaitGroup
	watching.Go(func() { a.cluster.Run(ctx) })
	leader.Run(ctx, a.options.Kube, a.options.Namespace, Lease, a.options.Log, a.Work)
	watching.Wait()
}

// Work publishes offers and answers slices until ctx ends, and then withdraws the offers. It does not ensure that
// only one agent works at a time; Run does.
func (a *Agent) Work(ctx context.Context) {
	for a.Ready() != nil {
		if !wait.For(ctx, syncEvery) {
			return
		}
	}
	a.options.Log.Info("this agent is the leader and publishes offers", "grantsSlices", a.options.GrantsSlices)
	var granting sync.WaitGroup
	if a.options.GrantsSlices {
		g := newGranter(granter{objects: a.options.Objects, record: a.cluster.record, config: a.config,
			world: a.cluster.World, log: a.options.Log, metrics: a.options.Metrics})
		granting.Go(func() { g.run(ctx, a.cluster.sliced) })
	}
	a.advertiser.Run(ctx)
	granting.Wait()
}

func (a *Agent) config() Config {
	return a.options.Config.Latest(a.options.Log, "the agent's config has errors; its last valid version stays in use")
}

// Ready returns nil when the agent has listed all objects that it needs to measure. Otherwise it returns an error
// with the kinds of objects that are not listed yet.
func (a *Agent) Ready() error { return a.cluster.Synced() }

// Advertised returns the error of the last round of writes. It returns nil if this agent has never held the Lease.
func (a *Agent) Advertised() error { return a.advertiser.Err() }

// offers measures the cluster, and returns the configured offers with the measured amounts and the time after which
// they expire.
func (a *Agent) offers() ([]api.Posted, time.Duration) {
	config := a.config()
	world := a.cluster.World()
	world.Tolerations = config.NodeTolerations
	world.GrowsTo, world.GrowsNode = config.GrowsTo, config.GrowsNode
	measured := map[string]corev1.ResourceList{}
	var offers []api.Posted
	for _, o := range config.Offers {
		posted := config.Measure(world, o)
		if a.options.GrantsSlices {
			posted.Class = Class
		}
		measured[o.Name] = posted.Lendable
		offers = append(offers, posted)
	}
	a.options.Metrics.Measured(measured, config.shown(world), world.Largest())
	return offers, config.TTL()
}

// shown returns the granted amounts for metrics, by consumer. It bounds the number of series: it adds up the amounts
// of all consumers without an offer under the name "other", and omits resources that no usable node has.
func (c Config) shown(w World) map[string]corev1.ResourceList {
	const other = "other"
	whole, _ := w.allocatable()
	shown := map[string]corev1.ResourceList{}
	for consumer, amounts := range w.Granted() {
		if c.first(consumer) < 0 {
			consumer = other
		}
		if shown[consumer] == nil {
			shown[consumer] = corev1.ResourceList{}
		}
		maps.DeleteFunc(amounts, func(name corev1.ResourceName, _ resource.Quantity) bool { return !has(whole, name) })
		add(shown[consumer], amounts)
	}
	return shown
}
