package main

import (
	"fmt"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver"
	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver/config"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

// lameDuck is how long a Service's endpoints need to follow a server that stops.
const lameDuck = 3 * time.Second

func newGRPCServer(c *common) *cobra.Command {
	var path, listen string
	var secure serverTLS
	var observe observeFlags
	var offered marketFlags
	cmd := &cobra.Command{
		Use:   "grpcserver",
		Short: "Serve Cluster Autoscaler's externalgrpc calls",
		Long: `Serve Cluster Autoscaler's externalgrpc calls. A changed config is read at Cluster Autoscaler's next Refresh; an
invalid version is logged, and the previous one stays in force.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			logger, err := c.logger(os.Stderr)
			if err != nil {
				return err
			}
			file, cfg, err := config.Open(path)
			if err != nil {
				return err
			}
			serve, err := secure.options(logger)
			if err != nil {
				return err
			}
			seen, err := observe.open(logger)
			if err != nil {
				return err
			}
			defer seen.close()
			t, temporal, err := c.dialMeasured(logger, seen, false)
			if err != nil {
				return err
			}
			defer t.Close()
			offered, err := offered.reader(cfg.Hub, logger)
			if err != nil {
				return err
			}
			options, err := serverOptions(cmd.Context(), file, cfg, offered, logger)
			if err != nil {
				return err
			}
			options.Groups = flow.NewGroups(t, workflows.Hub(cfg.Hub), c.taskQueue)
			server, err := grpcserver.New(options)
			if err != nil {
				return err
			}
			serve.LameDuck = lameDuck
			seen.observeServer(server, &serve)
			if serve.Credentials != nil {
				seen.observeCertificate(secure.files.Cert)
			}
			listener, err := net.Listen("tcp", listen)
			if err != nil {
				return fmt.Errorf("listen for Cluster Autoscaler: %w", err)
			}
			logger.Info("serving Cluster Autoscaler", "address", listener.Addr().String(), "hub", cfg.Hub, "groups",
				len(cfg.NodeGroups), "config", file.Hash(),
				"tls", serve.Credentials != nil, "temporal", temporal.Address, "namespace", temporal.Namespace)
			g, ctx := errgroup.WithContext(cmd.Context())
			g.Go(func() error { return seen.serve(ctx) })
			g.Go(func() error { offered.run(ctx); return nil })
			g.Go(func() error { return temporal.Await(ctx, t, logger) })
			g.Go(func() error { return grpcserver.Serve(ctx, listener, server, serve) })
			return g.Wait()
		},
	}
	cmd.Flags().StringVar(&path, "config", "", "YAML file with the node groups (required)")
	cmd.Flags().StringVar(&listen, "listen", ":8086", "address to serve on")
	secure.register(cmd)
	offered.register(cmd)
	observe.register(cmd, "")
	_ = cmd.MarkFlagRequired("config")
	return cmd
}
