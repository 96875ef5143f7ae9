package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/deploy/examples"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/file"
	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver"
	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver/config"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

type devFlags struct {
	dir, listen, temporalScript, uiPort string
}

func newDev(c *common) *cobra.Command {
	var f devFlags
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run everything on this machine, with simulated Liqo",
		Long: `Run everything on this machine: a Temporal dev server, a worker with simulated Liqo, and the gRPC server.
State lies in --dir and outlives the process; remove the directory to start anew.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return dev(cmd.Context(), c, f, cmd.OutOrStdout()) },
	}
	cmd.Flags().StringVar(&f.dir, "dir", ".run", "directory for state and logs")
	cmd.Flags().StringVar(&f.listen, "listen", "127.0.0.1:8086", "address of the gRPC server")
	cmd.Flags().StringVar(&f.temporalScript, "temporal-script", "./temporal-dev.sh", "script that runs the Temporal dev server")
	cmd.Flags().StringVar(&f.uiPort, "temporal-ui-port", "8233", "port of the Temporal UI")
	return cmd
}

func dev(ctx context.Context, c *common, f devFlags, out io.Writer) error {
	began := time.Now()
	if err := os.MkdirAll(f.dir, 0o750); err != nil {
		return fmt.Errorf("make --dir: %w", err)
	}
	logPath := filepath.Join(f.dir, "liqo-autoscaler.log")
	logFile, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	defer logFile.Close()
	logger, err := c.logger(logFile)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", f.listen)
	if err != nil {
		return fmt.Errorf("listen for Cluster Autoscaler: %w (is another one running? use --listen)", err)
	}
	defer listener.Close()
	temporal, err := startTemporal(ctx, c, f)
	if err != nil {
		return err
	}
	defer temporal.stop()
	if err := serveDev(ctx, c, f, logger, listener, func() {
		fmt.Fprintf(out, `liqo-autoscaler is up after %.1fs, with simulated Liqo

  gRPC for Cluster Autoscaler   %s
  Temporal                      %s (namespace %s)
  Temporal UI                   http://127.0.0.1:%s
  state and log                 %s, %s

Try "make demo" in another terminal. Ctrl-C stops everything.
`, time.Since(began).Seconds(), listener.Addr(), c.temporalAddress, c.namespace, f.uiPort, f.dir, logPath)
	}); err != nil {
		return err
	}
	fmt.Fprintln(out, "\nstopped; what was under way goes on at the next start")
	return nil
}

// serveDev runs worker and server until ctx ends; up is called once the server serves.
func serveDev(ctx context.Context, c *common, f devFlags, logger *slog.Logger, listener net.Listener, up func()) error {
	world, offers, err := sampleWorld(ctx, f.dir)
	if err != nil {
		return err
	}
	cfg, err := config.Parse(examples.NodeGroups)
	if err != nil {
		return fmt.Errorf("sample node groups: %w", err)
	}
	t, err := c.dial(logger)
	if err != nil {
		return err
	}
	defer t.Close()
	b := sim.New(world, sim.Options{})
	server, err := grpcserver.New(grpcserver.Options{Groups: flow.NewGroups(t, c.taskQueue), Specs: cfg.NodeGroups, Logger: logger})
	if err != nil {
		return err
	}
	run, cancel := context.WithCancel(ctx)
	defer cancel()
	g, run := errgroup.WithContext(run)
	g.Go(func() error {
		return worker.Run(run, worker.Options{
			Temporal: t, TaskQueue: c.taskQueue, Backend: b, Catalog: discovery.Resolve(offers, b, discovery.Options{}),
			Logger: logger, StopTimeout: 2 * time.Second,
		})
	})
	g.Go(func() error { return grpcserver.Serve(run, listener, server, grpcserver.ServeOptions{StopGrace: time.Second}) })
	g.Go(func() error {
		if err := waitFor(run, 2*time.Minute, func() error {
			if !server.Fresh() {
				return errors.New("the gRPC server has no state yet")
			}
			return nil
		}); err != nil {
			return err
		}
		up()
		return nil
	})
	err = g.Wait()
	if ctx.Err() != nil {
		return nil // stopped as asked
	}
	return err
}

// sampleWorld makes, once, a world with the providers of the sample offers, and writes the offers beside it.
func sampleWorld(ctx context.Context, dir string) (*sim.World, *file.Source, error) {
	world, err := sim.Open(filepath.Join(dir, "world.json"))
	if err != nil {
		return nil, nil, err
	}
	for _, id := range examples.Providers {
		if err := world.AddProvider(ctx, id, nil); err != nil {
			return nil, nil, err
		}
		if err := os.WriteFile(filepath.Join(dir, id+".kubeconfig"), world.Kubeconfig(id), 0o600); err != nil {
			return nil, nil, fmt.Errorf("write credentials: %w", err)
		}
	}
	path := filepath.Join(dir, "offers.yaml")
	if err := os.WriteFile(path, examples.Offers, 0o600); err != nil {
		return nil, nil, fmt.Errorf("write offers: %w", err)
	}
	source, err := file.Open(path)
	return world, source, err
}

// waitFor calls check until it succeeds, ctx ends, or the time is up; then its last error tells.
func waitFor(ctx context.Context, limit time.Duration, check func() error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}
