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
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/lead"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/reload"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// Options are what an Agent is made of; all but GrantsSlices and Sink are required.
type Options struct {
	Kube    kubernetes.Interface
	Objects dynamic.Interface
	// Config is the file; it is read again when something changes, and at each renewal.
	Config *reload.Files[Config]
	// Sink is where the offers go; nil means the consumers' tenant namespaces.
	Sink Sink
	// GrantsSlices has the agent answer the ResourceSlices of Class.
	GrantsSlices bool
	// Namespace has the Lease, by which one agent of several works.
	Namespace string
	// LiqoNamespace is the namespace of the cluster's Liqo, with the record of grants.
	LiqoNamespace string
	Metrics       *Metrics
	Log           *slog.Logger
}

// Lease is the name of the Lease of the agent that works.
const Lease = "liqo-autoscaler-agent"

// Agent measures and advertises.
type Agent struct {
	options    Options
	cluster    *Cluster
	advertiser *Advertiser
}

// OpenConfig reads the file for the first time; a fault is an error.
func OpenConfig(path string) (*reload.Files[Config], error) {
	return reload.Open(func(contents [][]byte) (Config, error) { return Parse(contents[0]) }, path)
}

// New makes an Agent; it does not connect.
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

// Run works while this is the agent with the Lease, until ctx ends; the offers are withdrawn then, or when the Lease is
// lost: what nobody measures is not offered.
func (a *Agent) Run(ctx context.Context) {
	var watching sync.WaitGroup
	watching.Go(func() { a.cluster.Run(ctx) })
	lead.Run(ctx, a.options.Kube, a.options.Namespace, Lease, a.options.Log, a.Work)
	watching.Wait()
}

// Work advertises until ctx ends, and then withdraws, without regard to other agents. Run calls it.
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
	return a.options.Config.Latest(a.options.Log, "the agent's config is refused, its last good version stays in force")
}

// Ready says what is missing before the agent can measure.
func (a *Agent) Ready() error { return a.cluster.Synced() }

// Advertised says why what is measured cannot be advertised; nil also while another agent does.
func (a *Agent) Advertised() error { return a.advertiser.Err() }

// offers are what the config offers, measured now.
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

// shown returns the granted amounts for metrics, by consumer. Consumers without an offer are summed as "other", and
// only resources of nodes are shown. So the number of series is bounded.
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
