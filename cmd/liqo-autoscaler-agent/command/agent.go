// Package command implements the command liqo-autoscaler-agent.
package command

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/agent"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/client"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/registry"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/serve"
)

type agentFlags struct {
	config, kubeconfig, namespace, liqoNamespace string
	server                                       client.Options
	grants                                       bool
	observe                                      serve.ObserveFlags
}

// New returns the command.
func New() *cobra.Command {
	var f agentFlags
	var log cli.Log
	cmd := &cobra.Command{
		Use:   "liqo-autoscaler-agent",
		Short: "Run in a provider cluster: measure free capacity and publish offers",
		Long: `Run in a provider cluster, measure its free capacity, and publish offers while the agent runs. The agent publishes to
the discovery server or, without --discovery-url, to ConfigMap ` + discovery.PublishedName + ` in each consumer's tenant
namespace. It watches nodes, pods, and Liqo's ResourceSlices and Tenants. It changes only its Lease, that ConfigMap
and, with --grant-slices, the answers to slices and the record of grants. All its files are read again when they
change.`,
		Version:       cli.Version,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return runAgent(cmd.Context(), &log, f) },
	}
	log.Register(cmd)
	cmd.Flags().StringVar(&f.config, "config", "", "YAML file with the offers, and the consumer of each (required)")
	cmd.Flags().StringVar(&f.kubeconfig, "kubeconfig", "", "access to the provider cluster (default: in-cluster)")
	cmd.Flags().StringVar(&f.namespace, "lease-namespace", "liqo-autoscaler",
		"namespace of the Lease "+agent.Lease+" that elects one of several agents")
	serve.RegisterDiscovery(cmd, &f.server, "the discovery server, https://host:port (default: none, see above)")
	cmd.Flags().BoolVar(&f.grants, "grant-slices", false, "answer Liqo's ResourceSlices of class "+agent.Class+
		": a slice is granted if the requested amounts are free, and denied otherwise")
	cmd.Flags().StringVar(&f.liqoNamespace, "liqo-namespace", "liqo",
		"namespace of the cluster's Liqo; with --grant-slices it has ConfigMap "+agent.RecordName+", the record of grants")
	_ = cmd.MarkFlagRequired("config")
	f.observe.Register(cmd, "")
	return cmd
}

func runAgent(ctx context.Context, log *cli.Log, f agentFlags) error {
	logger, err := log.Logger(os.Stderr)
	if err != nil {
		return err
	}
	if err := serve.CheckDiscovery(f.server); err != nil {
		return err
	}
	config, err := agent.OpenConfig(f.config)
	if err != nil {
		return fmt.Errorf("open the agent's config %s:\n%w", f.config, err)
	}
	options := agent.Options{Config: config, Namespace: f.namespace, LiqoNamespace: f.liqoNamespace,
		Log: logger, GrantsSlices: f.grants}
	if f.server.URL != "" {
		server, err := client.New(f.server)
		if err != nil {
			return err
		}
		options.Sink = &agent.Server{Client: server}
	}
	access, err := serve.ClusterAccess("the provider cluster", f.kubeconfig)
	if err != nil {
		return err
	}
	access.QPS, access.Burst = 100, 200 // many slices may be created together, and lists have many pages
	if options.Kube, err = kubernetes.NewForConfig(access); err != nil {
		return fmt.Errorf("open the provider cluster: %w", err)
	}
	if options.Objects, err = dynamic.NewForConfig(access); err != nil {
		return fmt.Errorf("open the provider cluster: %w", err)
	}
	seen, err := f.observe.Open(logger)
	if err != nil {
		return err
	}
	defer seen.Close()
	options.Metrics = agent.NewMetrics(registry.Namespace, seen.Registry)
	a, err := agent.New(options)
	if err != nil {
		return err
	}
	seen.ReadyWhen("cluster", func(context.Context) error { return a.Ready() })
	seen.ReadyWhen("offers", func(context.Context) error { return a.Advertised() })
	logger.Info("agent started", "discovery", f.server.URL)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return seen.Serve(ctx) })
	g.Go(func() error {
		a.Run(ctx)
		return nil
	})
	return g.Wait()
}
