package connect

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// Common holds the flags of every command that uses Temporal.
type Common struct {
	cli.Log
	Temporal  Flags
	TaskQueue string
	Hub       workflows.Hub // set only for commands that have called RegisterHub
}

// Register adds the flags, except the hub, to a command and its subcommands.
func (c *Common) Register(cmd *cobra.Command) {
	c.Log.Register(cmd)
	c.Temporal.Register(cmd)
	cmd.PersistentFlags().StringVar(&c.TaskQueue, "task-queue", "",
		"Temporal task queue; -<hub> is appended for hubs other than the default (default liqo-autoscaler)")
}

// RegisterHub adds the flag for the hub.
func (c *Common) RegisterHub(cmd *cobra.Command) {
	c.Hub = fleet.DefaultHub
	cmd.Flags().Var((*hubFlag)(&c.Hub), "hub", "name of this installation, as in the file of the node groups")
}

// memoWarning is the size of a memo, in bytes, from which the SDK logs a warning. The memo of a node group with a
// thousand instances is smaller than this.
const memoWarning = 512 << 10

// Dial returns a client that connects at its first use, so that a process can start while Temporal is not available.
// Dial also validates the log flags, so that even commands that never log refuse invalid values. The functions in
// change may modify the client's options.
func (c *Common) Dial(logger *slog.Logger,
	change ...func(*client.Options)) (client.Client, *Target, error) {
	if _, err := c.Handler(io.Discard); err != nil {
		return nil, nil, err
	}
	target, err := c.Temporal.Open(logger)
	if err != nil {
		return nil, nil, err
	}
	options := target.Options()
	options.Logger = temporalLog{log: logger.With("component", "temporal")}
	// By default the SDK logs a warning for a memo above 2 KiB. A group with eight instances has a larger memo.
	// Temporal refuses memos above 2 MiB.
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

// Run calls the function `do` with a client. If Temporal is not reachable, Run returns the reason immediately and
// does not call do.
func (c *Common) Run(ctx context.Context, do func(t client.Client) error) error {
	return c.RunAt(ctx, func(t client.Client, _ *Target) error { return do(t) })
}

// Complete finishes the definition of a short command that needs only Temporal: it sets RunE and adds the flag for
// the hub.
func (c *Common) Complete(cmd *cobra.Command,
	do func(ctx context.Context, t client.Client, out io.Writer, args []string) error) *cobra.Command {
	cmd.RunE = cli.Brief(func(ctx context.Context, cmd *cobra.Command, args []string) error {
		return c.Run(ctx, func(t client.Client) error { return do(ctx, t, cmd.OutOrStdout(), args) })
	})
	c.RegisterHub(cmd)
	return cmd
}

// RunAt does the same as Run, and also passes the Target to do.
func (c *Common) RunAt(ctx context.Context, do func(t client.Client, target *Target) error) error {
	t, target, err := c.Dial(slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer t.Close()
	if err := target.Reach(ctx); err != nil {
		return err
	}
	return target.Explain(ctx, do(t, target))
}
