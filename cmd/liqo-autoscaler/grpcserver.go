package main

import (
	"fmt"
	"net"
	"os"

	"github.com/spf13/cobra"

	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver"
	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver/config"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

func newGRPCServer(c *common) *cobra.Command {
	var path, listen string
	cmd := &cobra.Command{
		Use:   "grpcserver",
		Short: "Serve Cluster Autoscaler's externalgrpc calls",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			logger, err := c.logger(os.Stderr)
			if err != nil {
				return err
			}
			cfg, err := config.Load(path)
			if err != nil {
				return err
			}
			t, err := c.dial(logger)
			if err != nil {
				return err
			}
			defer t.Close()
			server, err := grpcserver.New(grpcserver.Options{Groups: flow.NewGroups(t, c.taskQueue), Specs: cfg.NodeGroups, Logger: logger})
			if err != nil {
				return err
			}
			listener, err := net.Listen("tcp", listen)
			if err != nil {
				return fmt.Errorf("listen for Cluster Autoscaler: %w", err)
			}
			logger.Info("serving Cluster Autoscaler", "address", listener.Addr().String(), "groups", len(cfg.NodeGroups))
			return grpcserver.Serve(cmd.Context(), listener, server, grpcserver.ServeOptions{})
		},
	}
	cmd.Flags().StringVar(&path, "config", "", "YAML file with the node groups (required)")
	cmd.Flags().StringVar(&listen, "listen", ":8086", "address to serve on")
	_ = cmd.MarkFlagRequired("config")
	return cmd
}
