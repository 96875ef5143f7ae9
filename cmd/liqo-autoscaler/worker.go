package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/liqo"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/microvm"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/account"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/searchattr"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

type workerFlags struct {
	kind, kubeconfig, liqoNamespace, world string
	probeURL, tenantRole, microvmNamespace string
	sources                                sources
	market                                 marketFlags
	observe                                observeFlags
	searchAttributes                       searchattr.Mode
	slots, driverSlots                     int
	version                                deploymentVersion
	anyLiqo                                bool
}

func newWorker(c *common) *cobra.Command {
	var f workerFlags
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Run the workflows and activities",
		Long: `Run the workflows and activities. Offers come from files (--offers), from labelled Secrets in the consumer cluster
(--offer-secrets-namespace), from the discovery server (--discovery-url), or from several of these.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runWorker(cmd.Context(), c, f) },
	}
	f.register(cmd)
	c.registerHub(cmd)
	registerSearchAttributes(cmd, &f.searchAttributes)
	cmd.Flags().IntVar(&f.slots, "slots", 200,
		"how many nodes and peerings this worker creates at once; at most 20, and half of them, for one provider")
	cmd.Flags().IntVar(&f.driverSlots, "driver-slots", 4,
		"how many scale-outs and scale-ins take a step at once; more asks more of Temporal, and slows the answers to "+
			"Cluster Autoscaler")
	f.version.register(cmd)
	f.market.registerStore(cmd)
	cmd.Flags().StringVar(&f.probeURL, "probe-url", "",
		"URL outside that tells, by any answer, that it is not this cluster that is cut off when its only provider is silent")
	f.observe.register(cmd, "")
	return cmd
}

func (f *workerFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.kind, "backend", "liqo",
		"what provides nodes: liqo, microvm for hosts of microVMs, or sim for a simulated world")
	cmd.Flags().StringVar(&f.kubeconfig, "kubeconfig", "", "access to the consumer cluster (default: in-cluster)")
	cmd.Flags().StringVar(&f.liqoNamespace, "liqo-namespace", "liqo", "namespace of Liqo in all clusters")
	cmd.Flags().BoolVar(&f.anyLiqo, "any-liqo-version", false,
		"peer also where the versions of Liqo do not go together or are too new, and put several nodes on a provider with "+
			"Liqo 1.1")
	cmd.Flags().StringVar(&f.world, "world", "", "file of the simulated world, for --backend sim")
	cmd.Flags().StringVar(&f.tenantRole, "tenant-role", "",
		"ClusterRole that the worker binds its own ServiceAccount to in each of Liqo's tenant namespaces")
	cmd.Flags().StringVar(&f.microvmNamespace, "microvm-namespace", "",
		"namespace of the consumer cluster with the worker's records of machines, for --backend microvm")
	f.sources.register(cmd)
}

func registerSearchAttributes(cmd *cobra.Command, mode *searchattr.Mode) {
	*mode = searchattr.Auto
	cmd.Flags().Var(mode, "search-attributes",
		"whether workflows set search attributes: auto when Temporal has them, on to not start without, off")
}

func runWorker(ctx context.Context, c *common, f workerFlags) error {
	logger, err := c.logger(os.Stderr)
	if err != nil {
		return err
	}
	version, err := f.version.of()
	if err != nil {
		return err
	}
	if err := f.sources.check(); err != nil { // before the clusters are asked: the check needs nothing but the flags
		return err
	}
	b, consumer, err := f.backend(c.hub)
	if err != nil {
		return err
	}
	offers, err := f.sources.open(b, consumer, c.hub)
	if err != nil {
		return err
	}
	shared := discovery.Share(offers)
	store, shown, err := f.publishes(ctx, c.hub, consumer)
	if err != nil {
		return err
	}
	seen, err := f.observe.open(logger)
	if err != nil {
		return err
	}
	defer seen.close()
	warn, err := seen.observeExpiry(b)
	if err != nil {
		return err
	}
	t, temporal, err := c.dialMeasured(logger, seen, true)
	if err != nil {
		return err
	}
	defer t.Close()
	polls := seen.observeWorker(t)
	logger.Info("worker started", "backend", f.kind, "offers", f.sources.files, "offerSecretsNamespace",
		f.sources.secretsNamespace,
		"discovery", f.sources.server.URL, "temporal", temporal.Address, "namespace", temporal.Namespace)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return seen.serve(ctx) })
	g.Go(func() error { return offers.watch(ctx) })
	g.Go(func() error { warn(ctx); return nil })
	g.Go(func() error {
		entities := flow.NewEntities(t, c.hub, c.taskQueue)
		publish(ctx, market.Publisher{Catalog: shared.Within(0), Entities: entities, Store: store, Logger: logger}, seen)
		return nil
	})
	g.Go(func() error {
		if err := temporal.Await(ctx, t, logger); err != nil || ctx.Err() != nil {
			return err
		}
		return worker.Run(ctx, worker.Options{
			Temporal: t, Namespace: temporal.Namespace, Hub: c.hub, TaskQueue: c.taskQueue, Backend: b,
			Catalog: shared.Within(discovery.Recent), Logger: logger, Started: polls,
			SearchAttributes: f.searchAttributes, Slots: f.slots, DriverSlots: f.driverSlots,
			ProbeURL: f.probeURL, Conditions: seen.conditions, Differing: seen.differing, Notices: shown, Version: version,
		})
	})
	return g.Wait()
}

// backend also returns the access to the consumer cluster, nil when that is simulated.
func (f workerFlags) backend(hub workflows.Hub) (backend.Backend, *rest.Config, error) {
	switch f.kind {
	case "sim":
		if f.world == "" {
			return nil, nil, fmt.Errorf("--backend sim needs --world")
		}
		w, err := sim.Open(f.world)
		if err != nil {
			return nil, nil, err
		}
		return sim.New(w, sim.Options{Hub: string(hub)}), nil, nil
	case "liqo":
		access, err := consumer(f.kubeconfig)
		if err != nil {
			return nil, nil, err
		}
		rights, err := f.tenantRights(access)
		if err != nil {
			return nil, nil, err
		}
		b, err := liqo.New(liqo.Config{Consumer: access, Hub: string(hub), LiqoNamespace: f.liqoNamespace,
			TenantRights: rights, AnyLiqo: f.anyLiqo})
		return b, access, err
	case "microvm":
		if f.microvmNamespace == "" {
			return nil, nil, fmt.Errorf("--backend microvm needs --microvm-namespace")
		}
		access, err := consumer(f.kubeconfig)
		if err != nil {
			return nil, nil, err
		}
		b, err := microvm.New(microvm.Config{Consumer: access, Namespace: f.microvmNamespace, Hub: string(hub)})
		return b, access, err
	default:
		return nil, nil, f.checkKind()
	}
}

// tenantRights are nil when the worker has its rights in tenant namespaces anyway.
func (f workerFlags) tenantRights(access *rest.Config) (*liqo.TenantRights, error) {
	if f.tenantRole == "" {
		return nil, nil
	}
	namespace, name, err := account.Of(access.BearerToken)
	if err != nil {
		return nil, fmt.Errorf("--tenant-role is for a worker with a ServiceAccount's token: %w", err)
	}
	return &liqo.TenantRights{Role: f.tenantRole, Namespace: namespace, Account: name}, nil
}

func (f workerFlags) checkKind() error {
	if f.kind != "liqo" && f.kind != "sim" && f.kind != "microvm" {
		return fmt.Errorf("--backend %q: use liqo, microvm or sim", f.kind)
	}
	return nil
}

// consumer is the access to the cluster that lacks room.
func consumer(kubeconfig string) (*rest.Config, error) {
	return clusterAccess("the consumer cluster", kubeconfig)
}

// clusterAccess is by a kubeconfig, or by the Pod's own ServiceAccount.
func clusterAccess(cluster, kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		access, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("no --kubeconfig, and not in a cluster: %w", err)
		}
		return access, nil
	}
	access, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig of %s: %w", cluster, err)
	}
	return access, nil
}
