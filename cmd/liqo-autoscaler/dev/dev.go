package dev

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
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver"
	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver/config"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/serve/parts"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

// NewDev returns the command dev.
func NewDev(c *connect.Common) *cobra.Command {
	var f devFlags
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run everything on this machine, with simulated Liqo",
		Long: `Run everything on this machine: a Temporal dev server, a worker with simulated Liqo, and the gRPC server. State is
kept in --dir and outlives the process; remove the directory to start from scratch. Edit nodegroups.yaml and
offers.yaml there, or pass your own files: a changed file takes effect within 10 seconds. Each offer is one simulated
provider with the offer's name; the credentials in the offer are ignored. If no Temporal answers, dev starts one with
temporal-dev.sh of the repository, or with the Temporal CLI next to this program or on PATH.`,
		Example: "  liqo-autoscaler dev\n  liqo-autoscaler dev --config nodegroups.yaml --offers offers.yaml",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), c, f, cmd.OutOrStdout()) },
	}
	cmd.Flags().StringVar(&f.dir, "dir", defaultDir, "directory for state and logs")
	cmd.Flags().StringVar(&f.config, "config", "",
		"YAML file with the node groups (default: nodegroups.yaml in --dir, created from a sample)")
	cmd.Flags().StringVar(&f.offers, "offers", "",
		"YAML file with the offers (default: offers.yaml in --dir, created from a sample)")
	cmd.Flags().StringVar(&f.listen, "listen", defaultListen, "address of the gRPC server")
	parts.RegisterPlaintext(cmd, &f.plaintext)
	f.observe.Register(cmd, "127.0.0.1")
	cmd.Flags().StringVar(&f.temporalScript, "temporal-script", "",
		"script that runs the Temporal dev server (default: temporal-dev.sh in the working directory or repository)")
	cmd.Flags().StringVar(&f.uiPort, "temporal-ui-port", "8233", "port of the Temporal UI")
	parts.RegisterSearchAttributes(cmd, &f.searchAttributes)
	for _, m := range mishaps {
		cmd.AddCommand(newFaultCommand(m))
	}
	return cmd
}

func run(ctx context.Context, c *connect.Common, f devFlags, out io.Writer) error {
	began := time.Now()
	if err := os.MkdirAll(f.dir, 0o750); err != nil {
		return fmt.Errorf("make --dir: %w", err)
	}
	unlock, err := lockDir(f.dir)
	if err != nil {
		return err
	}
	defer unlock()
	logPath := filepath.Join(f.dir, "liqo-autoscaler.log")
	logFile, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	defer logFile.Close()
	logger, err := c.Logger(logFile)
	if err != nil {
		return err
	}
	if err := parts.LoopbackOrPlaintext(f.listen, f.plaintext); err != nil {
		return err
	}
	seen, err := parts.Open(f.observe, logger)
	if err != nil {
		return err
	}
	defer seen.Close()
	seen.Hub = string(c.Hub)
	ca, err := net.Listen("tcp", f.listen)
	if err != nil {
		return fmt.Errorf("listen for Cluster Autoscaler: %w (is another server running? use --listen)", err)
	}
	defer ca.Close()
	p, err := openDev(ctx, f)
	if err != nil {
		return err
	}
	target, err := localTemporal(c, logger)
	if err != nil {
		return err
	}
	temporal, err := startTemporal(ctx, target, f, out)
	if err != nil {
		return err
	}
	defer temporal.stop()
	tryDemo, tryWatch := f.tries(target.Address, workflows.Hub(p.settings.Hub))
	serving, enough := context.WithCancel(ctx)
	defer enough()
	if err := serveDev(ctx, c, f, p, logger, ca, seen, func() {
		fmt.Fprintf(out, `liqo-autoscaler is up after %.1fs, with simulated Liqo

  gRPC for Cluster Autoscaler   %s
  Temporal                      %s (namespace %s)%s
  Temporal UI                   http://127.0.0.1:%s
  metrics                       %s
  health                        %s
  node groups                   %s
  offers                        %s
  state and log                 %s, %s

In another terminal, "%s" asks for a node and releases it, and "%s" shows what happens. Ctrl-C stops everything.
`, time.Since(began).Seconds(), ca.Addr(), target.Address, target.Namespace, temporal.hint(), f.uiPort,
			seen.MetricsURL(), seen.HealthURL(), p.configPath, p.offersPath, f.dir, logPath, tryDemo, tryWatch)
		go temporal.reportExit(serving, out)
		go reportTemporal(serving, caInterval, func(ctx context.Context) error { return answers(ctx, target) },
			filepath.Join(f.dir, "temporal.log"), out)
	}); err != nil {
		return err
	}
	fmt.Fprintln(out, "\nstopped; work in progress continues at the next start")
	return nil
}

// devParts holds the components of a dev run, except Temporal.
type devParts struct {
	configPath, offersPath string
	config                 *config.File
	settings               config.Config
	backend                *sim.Backend
	offers                 discovery.Catalog
	cluster                parts.Consumer
}

// openDev reads the config and offers files and opens the simulated world.
func openDev(ctx context.Context, f devFlags) (p devParts, err error) {
	if p.configPath, err = devFile(f.config, f.dir, "nodegroups.yaml", examples.NodeGroups); err != nil {
		return p, err
	}
	if p.offersPath, err = devFile(f.offers, f.dir, "offers.yaml", examples.Offers); err != nil {
		return p, err
	}
	if p.config, p.settings, err = config.Open(p.configPath); err != nil {
		return p, err
	}
	source, err := file.Open(p.offersPath)
	if err != nil {
		return p, err
	}
	world, err := sim.Open(filepath.Join(f.dir, "world.json"))
	if err != nil {
		return p, err
	}
	p.cluster = parts.Simulated(world, workflows.Hub(p.settings.Hub))
	p.backend = sim.New(world, sim.Options{Hub: p.settings.Hub})
	offers := &simulated{Source: source, world: world, known: map[string]bool{}}
	p.offers = discovery.Resolve(offers, p.backend, discovery.Options{})
	_, _, err = offers.List(ctx) // creates the simulated providers
	return p, err
}

// serveDev runs a worker and the gRPC server until ctx ends. When both serve, it calls the function up.
func serveDev(
	ctx context.Context, c *connect.Common, f devFlags, p devParts, logger *slog.Logger, ca net.Listener,
	seen *parts.Monitor, up func(),
) error {
	hub := workflows.Hub(p.settings.Hub)
	t, target, err := seen.Dial(c, logger, true)
	if err != nil {
		return err
	}
	defer t.Close()
	store := market.File(filepath.Join(f.dir, marketFile))
	offered := parts.Offered{Reader: market.NewReader(store, logger)}
	options, err := parts.ServerOptions(ctx, p.config, p.settings, offered, flow.NewGroups(t, hub, c.TaskQueue), logger)
	if err != nil {
		return err
	}
	options.Ended = flow.NewHub(t, hub, c.TaskQueue).Ended
	server, err := grpcserver.New(options)
	if err != nil {
		return err
	}
	transport := grpcserver.ServeOptions{StopGrace: time.Second} // plaintext, see loopbackOrPlaintext
	seen.ObserveServer(server, &transport)
	seen.Rounds.Memory, seen.Rounds.Costs, seen.Rounds.Positions = p.cluster.Memory, p.cluster.Costs, p.cluster.Positions
	polls, waits := seen.ObserveWorker(t)
	g, run := errgroup.WithContext(ctx)
	g.Go(func() error { return seen.Serve(run) })
	g.Go(func() error { offered.Run(run); return nil })
	working := make(chan struct{})
	g.Go(func() error {
		uid, err := p.cluster.UID(run)
		if err != nil {
			return err
		}
		return worker.Run(run, worker.Options{
			Temporal: t, Namespace: target.Namespace, Hub: hub, TaskQueue: c.TaskQueue, Backend: p.backend,
			Catalog: p.offers, Logger: logger, StopTimeout: 2 * time.Second,
			Started: func() { polls(); close(working) }, SearchAttributes: f.searchAttributes, Waiting: waits,
			Differing: seen.Differing, Cluster: uid, Lead: p.cluster.Lead,
			Publish:  parts.Publish(store, p.offers, seen, logger),
			Observer: seen.Rounds,
		})
	})
	g.Go(func() error {
		select { // wait for the worker, because Temporal delays tasks for which no worker polls
		case <-working:
			return grpcserver.Serve(run, ca, server, transport)
		case <-run.Done():
			return nil
		}
	})
	g.Go(func() error { refresh(run, server, caInterval, logger); return nil })
	g.Go(func() error {
		if err := cli.WaitFor(run, 2*time.Minute, func() error {
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
		return nil // ctx has ended on request
	}
	return err
}
