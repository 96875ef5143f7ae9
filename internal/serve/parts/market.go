package parts

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver"
	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver/config"
	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver/derive"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/serve"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/events"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// MarketFlags holds the flags that select the store of the market. The market is the list of current offers, which
// the worker publishes and the gRPC server reads. The flags may name at most one store.
type MarketFlags struct {
	file, namespace, kubeconfig string
	maxDerived                  int
}

// Register adds the flags of a process that reads the market.
func (f *MarketFlags) Register(cmd *cobra.Command) {
	f.RegisterStore(cmd)
	cmd.Flags().StringVar(&f.kubeconfig, "kubeconfig", "",
		"access to the consumer cluster, for --market-namespace (default: in-cluster)")
	cmd.Flags().IntVar(&f.maxDerived, "max-derived-groups", derive.DefaultMax,
		"maximum number of node groups that are derived from the market; the cheapest are kept")
}

// RegisterStore adds the flags that name the store.
func (f *MarketFlags) RegisterStore(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.namespace, "market-namespace", "",
		"namespace of the consumer cluster with the ConfigMap "+market.ConfigMapName("HUB")+
			", in which the worker publishes the current offers")
	cmd.Flags().StringVar(&f.file, "market-file", "",
		"file with the published market, instead of --market-namespace; for processes on one machine")
}

// open returns the store, or nil if no flag names a store. It calls the function consumer only if the store is a
// ConfigMap.
func (f MarketFlags) open(hub string, consumer func() (*rest.Config, error)) (market.Store, error) {
	switch {
	case f.file != "" && f.namespace != "":
		return nil, errors.New("--market-file and --market-namespace: give only one")
	case f.file != "":
		return market.File(f.file), nil
	case f.namespace == "":
		return nil, nil
	}
	access, err := consumer()
	if err != nil {
		return nil, err
	}
	if access == nil {
		return nil, errors.New("--market-namespace needs a consumer cluster: use --backend liqo, or --market-file")
	}
	client, err := kubernetes.NewForConfig(access)
	if err != nil {
		return nil, fmt.Errorf("open consumer cluster for the market: %w", err)
	}
	return market.ConfigMap{Client: client, Namespace: f.namespace, Name: market.ConfigMapName(hub)}, nil
}

// Offered holds a reader of the market. The reader is nil in the zero value.
type Offered struct {
	*market.Reader
	// maxDerived is the maximum number of node groups that are derived from the market; 0 means the default.
	maxDerived int
}

// Reader returns the reader of the market, or the zero value if no flag names a store.
func (f MarketFlags) Reader(hub string, log *slog.Logger) (Offered, error) {
	if f.maxDerived < 1 {
		return Offered{}, fmt.Errorf("--max-derived-groups %d: give at least 1", f.maxDerived)
	}
	store, err := f.open(hub, func() (*rest.Config, error) { return serve.Consumer(f.kubeconfig) })
	if err != nil || store == nil {
		return Offered{}, err
	}
	return Offered{market.NewReader(store, log), f.maxDerived}, nil
}

// Run reads the market repeatedly until ctx ends. Without a reader it returns immediately.
func (o Offered) Run(ctx context.Context) {
	if o.Reader != nil {
		o.Reader.Run(ctx)
	}
}

// Publishes opens the store of the market, and a recorder of Kubernetes Events that works until ctx ends. The store
// is nil if no flag names one. The recorder is nil if consumer is nil, because a simulated cluster has no Events.
func (f MarketFlags) Publishes(ctx context.Context, hub workflows.Hub,
	consumer *rest.Config) (market.Store, activities.EventRecorder, error) {
	store, err := f.open(string(hub), func() (*rest.Config, error) { return consumer, nil })
	if err != nil || consumer == nil {
		return store, nil, err
	}
	client, err := events.NewClient(consumer)
	if err != nil {
		return nil, nil, err
	}
	about := types.NamespacedName{Namespace: f.namespace, Name: market.ConfigMapName(string(hub))}
	return store, events.New(ctx, client, about), nil
}

// Publish returns a function that publishes the market and the worker's findings until the function's context ends.
// It returns nil if store is nil.
func Publish(store market.Store, offers discovery.Catalog, seen *Monitor,
	log *slog.Logger) func(context.Context, market.Entities, market.Observed) {
	if store == nil {
		return nil
	}
	return func(ctx context.Context, entities market.Entities, observed market.Observed) {
		market.Publisher{Catalog: offers, Entities: entities, Observed: observed, Store: store, Logger: log,
			Findings: seen.findings}.Run(ctx)
	}
}

// ServerOptions returns the options of a gRPC server. The server reads the specs of groups from the config file, and
// derives the groups with `per` from the market. If Temporal responds when the server starts, the server also knows
// the groups that were derived earlier. ServerOptions returns an error if a group in the config has `per` and the
// parameter offered contains no reader.
func ServerOptions(ctx context.Context, file *config.File, cfg config.Config, offered Offered, groups grpcserver.Groups,
	log *slog.Logger) (grpcserver.Options, error) {
	derives := slices.ContainsFunc(cfg.NodeGroups, func(g config.NodeGroup) bool { return g.Per.Derives() })
	if derives && offered.Reader == nil {
		return grpcserver.Options{}, errors.New("a node group has `per`: give --market-namespace or --market-file, the " +
			"place where the worker publishes the offers")
	}
	derived := &derive.Groups{Log: log, Max: offered.maxDerived}
	derived.InForce = func() ([]fleet.GroupSpec, bool) {
		specs, err := derive.ReadInForce(ctx, groups)
		if err != nil {
			log.Info("cannot read the running node groups, so no node group is derived yet", "error", err)
		}
		return specs, err == nil
	}
	o := grpcserver.Options{Groups: groups, Logger: log, Version: file.Hash(), Limits: cfg.Limits, Derived: derived}
	if offered.Reader != nil {
		if err := offered.Read(ctx); err != nil {
			log.Info("cannot read the market yet", "error", err)
		}
		o.Market, derived.Market = offered.Current, offered.Current
	}
	o.Specs, o.Reload = derived.Follow(cfg, file)
	return o, nil
}
