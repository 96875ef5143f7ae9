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
	// Config is the configuration file. The agent reads it again after each change and at each renewal.
	Config *reload.Files[Config]
	// Sink receives the offers; nil publishes them in the consumers' tenant namespaces.
	Sink Sink
	// GrantsSlices makes the agent answer the ResourceSlices of Class.
	GrantsSlices bool
	// Namespace contains the Lease that selects the leader among several agents.
	Namespace string
	// LiqoNamespace is the namespace in which Liqo runs. It contains the record of grants.
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

// Run calls Work whenever this agent holds the Lease, until ctx ends. It withdraws the offers when ctx ends or the
// Lease is lost, so that no offer stays published without an agent that measures it.
func (a *Agent) Run(ctx context.Context) {
	var watching sync.WaitGroup
	watching.Go(func() { a.cluster.Run(ctx) })
	leader.Run(ctx, a.options.Kube, a.options.Namespace, Lease, a.options.Log, a.Work)
	watching.Wait()
}

// Work publishes offers and answers slices until ctx ends, and then withdraws the offers. It does not check whether
// other agents work too; Run does.
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

// Ready returns an error with the kinds of objects that the agent has not listed yet, or nil when it can measure.
func (a *Agent) Ready() error { return a.cluster.Synced() }

// Advertised returns the error of the last write of the offers. It is nil while another agent leads.
func (a *Agent) Advertised() error { return a.advertiser.Err() }

// offers returns the configured offers with the amounts measured now, and the time after which they expire.
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

// shown returns the granted amounts for metrics, by consumer. To bound the number of series, it adds all consumers
// without an offer as "other", and omits resources that no node has.
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
