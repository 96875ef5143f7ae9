package main

import (
	"fmt"
	"net"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver"
	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver/config"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

func newGRPCServer(c *common) *cobra.Command {
	var path, listen string
	var secure serverTLS
	var observe observeFlags
	cmd := &cobra.Command{
		Use:   "grpcserver",
		Short: "Serve Cluster Autoscaler's externalgrpc calls",
		Long: `Serve Cluster Autoscaler's externalgrpc calls. The config is read again when it has changed, at Cluster Autoscaler's next
Refresh; a broken version is logged and the old one stays in force.`,
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
			measured, err := seen.temporal(false)
			if err != nil {
				return err
			}
			t, err := c.dial(logger, measured)
			if err != nil {
				return err
			}
			defer t.Close()
			server, err := grpcserver.New(grpcserver.Options{
				Groups: flow.NewGroups(t, workflows.Hub(cfg.Hub), c.taskQueue),
				Specs:  cfg.NodeGroups, Limits: cfg.Limits, Version: file.Hash(), Reload: reload(file),
				Logger: logger,
			})
			if err != nil {
				return err
			}
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
				"tls", serve.Credentials != nil)
			g, ctx := errgroup.WithContext(cmd.Context())
			g.Go(func() error { return seen.serve(ctx) })
			g.Go(func() error { return grpcserver.Serve(ctx, listener, server, serve) })
			return g.Wait()
		},
	}
	cmd.Flags().StringVar(&path, "config", "", "YAML file with the node groups (required)")
	cmd.Flags().StringVar(&listen, "listen", ":8086", "address to serve on")
	secure.register(cmd)
	observe.register(cmd, "")
	_ = cmd.MarkFlagRequired("config")
	return cmd
}

// reload reads the config file again for the server.
func reload(file *config.File) func() (grpcserver.Settings, bool, error) {
	return func() (grpcserver.Settings, bool, error) {
		cfg, changed, err := file.Changed()
		return grpcserver.Settings{Specs: cfg.NodeGroups, Limits: cfg.Limits, Version: file.Hash()}, changed, err
	}
}
