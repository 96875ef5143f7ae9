package serve

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"
	sdkworker "go.temporal.io/sdk/worker"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/serve"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/serve/parts"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/observer"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

type workerFlags struct {
	parts.BackendFlags
	probeURL           string
	market             parts.MarketFlags
	mirror             parts.MirrorFlags
	observe            serve.ObserveFlags
	searchAttributes   bool
	slots, driverSlots int
	observeEvery       time.Duration
	version            parts.DeploymentVersion
	bundled            parts.BundledFlags
}

// NewWorker returns the command worker.
func NewWorker(c *connect.Common) *cobra.Command {
	var f workerFlags
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Run the workflows and activities",
		Long: `Run the workflows and activities. Offers come from files (--offers), from labelled Secrets in the consumer cluster
(--offer-secrets-namespace), from the discovery server (--discovery-url), or from several of these.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runWorker(cmd.Context(), c, f) },
	}
	f.BackendFlags.Register(cmd)
	c.RegisterHub(cmd)
	parts.RegisterSearchAttributes(cmd, &f.searchAttributes)
	cmd.Flags().IntVar(&f.slots, "slots", 200,
		"how many nodes and peerings this worker creates concurrently; for one provider at most half as many, and at most 20")
	cmd.Flags().IntVar(&f.driverSlots, "driver-slots", 0,
		"maximum number of scale-outs and scale-ins that take a step at the same time; 0 means 4 next to Temporal, and "+
			"up to 64 far from it; a higher number adds load on Temporal, and delays the answers to Cluster Autoscaler")
	cmd.Flags().DurationVar(&f.observeEvery, "observe-every", observer.Every,
		"how often the worker compares the existing objects with the booked instances, and checks each provider in use")
	f.version.Register(cmd)
	f.bundled.Register(cmd)
	f.market.RegisterStore(cmd)
	f.mirror.Register(cmd)
	cmd.Flags().StringVar(&f.probeURL, "probe-url", "",
		"URL outside the cluster that is requested when the only provider does not answer; any response shows that this "+
			"cluster's own network works")
	f.observe.Register(cmd, "")
	return cmd
}

// check validates the flags without requests to a cluster.
func (f workerFlags) check() (sdkworker.WorkerDeploymentVersion, error) {
	version, err := f.version.Of()
	if err != nil {
		return version, err
	}
	return version, errors.Join(f.bundled.Check(), f.Sources.Check())
}

// runFor reads the UID of the consumer cluster, and then runs the worker with this UID.
func runFor(ctx context.Context, cluster parts.Consumer, o worker.Options) (err error) {
	if o.Cluster, err = cluster.UID(ctx); err != nil {
		return err
	}
	o.Lead = cluster.Lead
	return worker.Run(ctx, o)
}

// publishes opens the outputs of the worker for operators: the market, Kubernetes Events, and the mirror (objects
// that kubectl get shows).
func (f workerFlags) publishes(ctx context.Context, hub workflows.Hub, consumer *rest.Config,
	log *slog.Logger) (market.Store, activities.EventRecorder, observer.Mirror, error) {
	store, events, err := f.market.Publishes(ctx, hub, consumer)
	if err != nil {
		return nil, nil, nil, err
	}
	shows, store, err := f.mirror.Open(store, hub, consumer, log)
	return store, events, shows, err
}

func runWorker(ctx context.Context, c *connect.Common, f workerFlags) error {
	logger, err := c.Logger(os.Stderr)
	if err != nil {
		return err
	}
	version, err := f.check()
	if err != nil {
		return err
	}
	b, consumer, err := f.Backend(c.Hub)
	if err != nil {
		return err
	}
	offers, err := f.Sources.Open(b, consumer, c.Hub)
	if err != nil {
		return err
	}
	shared := discovery.Share(offers)
	store, shown, shows, err := f.publishes(ctx, c.Hub, consumer, logger)
	if err != nil {
		return err
	}
	seen, err := parts.Open(f.observe, logger)
	if err != nil {
		return err
	}
	defer seen.Close()
	seen.Hub = string(c.Hub)
	cluster, err := f.ConsumerOf(c.Hub, consumer, seen.Clocks, logger)
	if err != nil {
		return err
	}
	warn, err := seen.ObserveExpiry(b)
	if err != nil {
		return err
	}
	t, temporal, err := seen.Dial(c, logger, true)
	if err != nil {
		return err
	}
	defer t.Close()
	seen.Rounds.Memory, seen.Rounds.Costs, seen.Rounds.Positions = cluster.Memory, cluster.Costs, cluster.Positions
	seen.Rounds.Every = f.observeEvery
	seen.Rounds.Mirror = shows
	polls, waits := seen.ObserveWorker(t)
	f.bundled.ReadyWhileItStores(seen, t, temporal.Namespace)
	logger.Info("worker started", "backend", f.Kind, "offers", f.Sources.Files, "offerSecretsNamespace",
		f.Sources.SecretsNamespace,
		"discovery", f.Sources.Server.URL, "temporal", temporal.Address, "namespace", temporal.Namespace)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return seen.Serve(ctx) })
	g.Go(func() error { return offers.Watch(ctx) })
	g.Go(func() error { warn(ctx); return nil })
	g.Go(func() error {
		f.bundled.Prepare(ctx, t, temporal, logger, waits)
		if err := temporal.Await(ctx, t, logger); err != nil || ctx.Err() != nil {
			return err
		}
		return runFor(ctx, cluster, worker.Options{
			Temporal: t, Namespace: temporal.Namespace, Hub: c.Hub, TaskQueue: c.TaskQueue, Backend: b,
			Catalog: shared.Within(discovery.Recent), Logger: logger, Started: polls,
			SearchAttributes: f.searchAttributes, Waiting: waits, Slots: f.slots, DriverSlots: f.driverSlots,
			ProbeURL: f.probeURL, Differing: seen.Differing, Events: shown, Version: version,
			Publish:  parts.Publish(store, shared.Within(0), seen, logger),
			Observer: seen.Rounds,
		})
	})
	return g.Wait()
}
