package serve

import (
	"fmt"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver"
	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver/config"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/serve"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/serve/parts"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

// lameDuck is the time for which a stopping server still answers, so that Kubernetes can remove it from the Service's
// endpoints.
const lameDuck = 3 * time.Second

// NewGRPCServer returns the command grpcserver.
func NewGRPCServer(c *connect.Common) *cobra.Command {
	var path, listen string
	var secure parts.ServerTLS
	var observe serve.ObserveFlags
	var markets parts.MarketFlags
	cmd := &cobra.Command{
		Use:   "grpcserver",
		Short: "Serve Cluster Autoscaler's externalgrpc calls",
		Long: `Serve Cluster Autoscaler's externalgrpc calls. A changed config is read at Cluster Autoscaler's next Refresh; an
invalid version is logged, and the previous one stays in use.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			logger, err := c.Logger(os.Stderr)
			if err != nil {
				return err
			}
			file, cfg, err := config.Open(path)
			if err != nil {
				return err
			}
			transport, err := secure.Options(logger)
			if err != nil {
				return err
			}
			seen, err := parts.Open(observe, logger)
			if err != nil {
				return err
			}
			defer seen.Close()
			seen.Hub = cfg.Hub
			t, temporal, err := seen.Dial(c, logger, false)
			if err != nil {
				return err
			}
			defer t.Close()
			offered, err := markets.Reader(cfg.Hub, logger)
			if err != nil {
				return err
			}
			groups := flow.NewGroups(t, workflows.Hub(cfg.Hub), c.TaskQueue)
			options, err := parts.ServerOptions(cmd.Context(), file, cfg, offered, groups, logger)
			if err != nil {
				return err
			}
			options.Polled = groups.Polled
			options.Ended = flow.NewHub(t, workflows.Hub(cfg.Hub), c.TaskQueue).Ended
			server, err := grpcserver.New(options)
			if err != nil {
				return err
			}
			transport.LameDuck = lameDuck
			seen.ObserveServer(server, &transport)
			if transport.Credentials != nil {
				seen.ObserveCertificate(secure.Files.Cert)
			}
			listener, err := net.Listen("tcp", listen)
			if err != nil {
				return fmt.Errorf("listen for Cluster Autoscaler: %w", err)
			}
			logger.Info("serving Cluster Autoscaler", "address", listener.Addr().String(), "hub", cfg.Hub, "groups",
				len(cfg.NodeGroups), "config", file.Hash(),
				"tls", transport.Credentials != nil, "temporal", temporal.Address, "namespace", temporal.Namespace)
			g, ctx := errgroup.WithContext(cmd.Context())
			g.Go(func() error { return seen.Serve(ctx) })
			g.Go(func() error { offered.Run(ctx); return nil })
			g.Go(func() error { return temporal.Await(ctx, t, logger) })
			g.Go(func() error {
				hub := flow.NewHub(t, workflows.Hub(cfg.Hub), c.TaskQueue)
				return markets.OwnsHub(ctx, hub, groups.OfCluster, logger)
			})
			g.Go(func() error { return grpcserver.Serve(ctx, listener, server, transport) })
			return g.Wait()
		},
	}
	cmd.Flags().StringVar(&path, "config", "", "YAML file with the node groups (required)")
	cmd.Flags().StringVar(&listen, "listen", ":8086", "address to serve on")
	secure.Register(cmd)
	markets.Register(cmd)
	observe.Register(cmd, "")
	_ = cmd.MarkFlagRequired("config")
	return cmd
}
