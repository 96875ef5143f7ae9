package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"
	"golang.org/x/term"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/connect"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// version is stamped by the build.
var version = "dev"

// common are the flags every command that works has.
type common struct {
	logLevel, logFormat string
	temporal            connect.Flags
	taskQueue           string
	hub                 workflows.Hub // of those commands that have the flag
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "liqo-autoscaler",
		Short:         "Liqo virtual nodes for the Kubernetes Cluster Autoscaler",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	c := &common{}
	f := root.PersistentFlags()
	f.StringVar(&c.logLevel, "log-level", "info", "minimum level that is logged: debug, info, warn, error")
	f.StringVar(&c.logFormat, "log-format", "", "text or json; text on a terminal, json elsewhere")
	c.temporal.Register(root)
	f.StringVar(&c.taskQueue, "task-queue", "",
		"Temporal task queue; -<hub> is appended for hubs other than the default (default liqo-autoscaler)")
	root.AddCommand(newGRPCServer(c), newWorker(c), newDiscovery(c), newAgent(c), newDev(c), newDemo(c),
		newStatus(c), newReport(c), newOffers(c), newExplain(c), newPause(c), newResume(c), newCordon(c),
		newUncordon(c), newDoctor(c), newTemporal(c), newConfig(), newConformance(), newProviderAccess(), newWriters())
	return root
}

// parent makes a command that only has others below it; alone it prints its help. Without RunE cobra would let a
// misspelt command pass.
func parent(use, short string, below ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(below...)
	return cmd
}

func (c *common) registerHub(cmd *cobra.Command) {
	c.hub = fleet.DefaultHub
	cmd.Flags().Var((*hubFlag)(&c.hub), "hub", "name of this installation, as in the file of the node groups")
}

// hubFlag is a flag that names a hub.
type hubFlag workflows.Hub

func (f *hubFlag) String() string { return string(*f) }
func (f *hubFlag) Type() string   { return "string" }
func (f *hubFlag) Set(name string) error {
	if !fleet.ValidHub(name) {
		return fmt.Errorf("use at most %d lower-case letters, digits and dashes, with a letter or digit at both ends",
			fleet.MaxHub)
	}
	*f = hubFlag(name)
	return nil
}

// logger makes the process's one log sink; libraries that keep a global one get it through slog.Default().
func (c *common) logger(out io.Writer) (*slog.Logger, error) {
	handler, err := c.handler(out)
	if err != nil {
		return nil, err
	}
	logger := slog.New(handler)
	slog.SetLogLoggerLevel(slog.LevelWarn) // what still goes to package log is net/http's complaints
	slog.SetDefault(logger)
	return logger, nil
}

// handler writes to out what the flags ask for.
func (c *common) handler(out io.Writer) (slog.Handler, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.logLevel)); err != nil {
		return nil, fmt.Errorf("--log-level %q: use debug, info, warn or error", c.logLevel)
	}
	options := &slog.HandlerOptions{Level: level}
	switch format := c.logFormat; {
	case format == "json", format == "" && !isTerminal(out):
		options.ReplaceAttr = durationsInSeconds
		return slog.NewJSONHandler(out, options), nil
	case format == "text", format == "":
		return slog.NewTextHandler(out, options), nil
	default:
		return nil, fmt.Errorf("--log-format %q: use text or json", format)
	}
}

// durationsInSeconds makes the JSON handler write seconds instead of nanoseconds.
func durationsInSeconds(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.Float64Value(a.Value.Duration().Seconds())
	}
	return a
}

func isTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// memoWarning is the size of a memo from which the log warns, in bytes: a thousand instances stay below.
const memoWarning = 512 << 10

// dialMeasured is dial for a server or, with steps, for a worker: the metrics of its client are served with all others.
func (c *common) dialMeasured(logger *slog.Logger, seen *observer, steps bool) (client.Client, *connect.Target, error) {
	measured, err := seen.temporal(steps)
	if err != nil {
		return nil, nil, err
	}
	return c.dial(logger, measured)
}

// dial makes a client that connects when it is first used, so that a process starts while Temporal is down. It
// validates the log flags too, so that commands that never log still refuse bad values.
func (c *common) dial(logger *slog.Logger,
	change ...func(*client.Options)) (client.Client, *connect.Target, error) {
	if _, err := c.handler(io.Discard); err != nil {
		return nil, nil, err
	}
	target, err := c.temporal.Open(logger)
	if err != nil {
		return nil, nil, err
	}
	options := target.Options()
	options.Logger = temporalLog{log: logger.With("component", "temporal")}
	// A node group's memo passes the SDK's 2 KiB with eight instances; Temporal's own bound is 2 MiB.
	options.PayloadLimits = client.PayloadLimitOptions{MemoSizeWarning: memoWarning}
	for _, f := range change {
		f(&options)
	}
	t, err := client.NewLazyClient(options)
	if err != nil {
		return nil, nil, fmt.Errorf("temporal client for %s: %w", target.Address, err)
	}
	return t, target, nil
}

// ask runs a command that is over soon: when Temporal does not answer it says at once why.
func (c *common) ask(ctx context.Context, do func(t client.Client) error) error {
	return c.askAt(ctx, func(t client.Client, _ *connect.Target) error { return do(t) })
}

// brief is what runs a command that is over soon: its context ends after readTimeout.
func brief(run func(ctx context.Context, cmd *cobra.Command, args []string) error) func(*cobra.Command,
	[]string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx, cancel := context.WithTimeout(cmd.Context(), readTimeout)
		defer cancel()
		return run(ctx, cmd, args)
	}
}

// asks completes a command that asks no more than Temporal.
func (c *common) asks(cmd *cobra.Command,
	do func(ctx context.Context, t client.Client, out io.Writer, args []string) error) *cobra.Command {
	cmd.RunE = brief(func(ctx context.Context, cmd *cobra.Command, args []string) error {
		return c.ask(ctx, func(t client.Client) error { return do(ctx, t, cmd.OutOrStdout(), args) })
	})
	c.registerHub(cmd)
	return cmd
}

// askAt is ask for those who want to know whom.
func (c *common) askAt(ctx context.Context, do func(t client.Client, target *connect.Target) error) error {
	t, target, err := c.dial(slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer t.Close()
	if err := target.Reach(ctx); err != nil {
		return err
	}
	return target.Explain(ctx, do(t, target))
}
