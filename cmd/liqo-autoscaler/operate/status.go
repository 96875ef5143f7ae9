package operate

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli/output"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/serve"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

// NewStatus returns the command status.
func NewStatus(c *connect.Common) *cobra.Command {
	var f statusFlags
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the node groups and their instances",
		Long: `Show the node groups and their instances as the groups last published them, the groups that cannot grow or differ from
their config, and the conditions of providers. It needs Temporal, but no worker and no cluster. With access to the
cluster it also checks whether the spending limits permit the price of the next node. It then also shows the findings
of the worker: nodes that differ from their group's template, and objects that are left on providers. -o wide has more
columns and does not shorten the column WHY.

With --watch the command prints the status and then a line for each change, until it is interrupted. With --watch and
-o json it prints one object per line.`,
		Example: "  liqo-autoscaler status\n  liqo-autoscaler status --group gpu -o wide\n" +
			"  liqo-autoscaler status --phase Failed,NotReady --provider milan\n  liqo-autoscaler status --watch",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return c.Run(cmd.Context(), func(t client.Client) error {
				from := reader{flow.NewGroups(t, c.Hub, c.TaskQueue), flow.NewEntities(t, c.Hub, c.TaskQueue),
					flow.NewHub(t, c.Hub, c.TaskQueue)}
				ctx, cancel := context.WithTimeout(cmd.Context(), cli.ReadTimeout)
				defer cancel()
				m := f.market.Ask(ctx, f.kubeconfig, string(c.Hub), cmd.ErrOrStderr())
				if f.watch {
					return streamStatus(cmd.Context(), from, f, m, cmd.OutOrStdout(), cmd.ErrOrStderr())
				}
				return printStatus(ctx, from, f, m, cmd.OutOrStdout())
			})
		},
	}
	c.RegisterHub(cmd)
	f.register(c, cmd)
	cmd.Flags().StringVarP(&f.output, "output", "o", "table", "what to print: "+strings.Join(output.Formats, ", "))
	cli.Values(cmd, "output", output.Formats...)
	serve.RegisterKubeconfig(cmd, &f.kubeconfig)
	f.market.Register(cmd)
	cmd.Flags().BoolVarP(&f.watch, "watch", "w", false, "continue, and show each change")
	return cmd
}

// printStatus prints the parts of the status that it can read, and returns an error for the other parts.
func printStatus(ctx context.Context, from reader, f statusFlags, m *market.Market, out io.Writer) error {
	r, err := f.read(ctx, from, m)
	if len(r.snapshots) == 0 && err != nil {
		return err
	}
	waits(ctx, from.groups, r.Instances)
	return errors.Join(output.Print(out, f.output, output.StyleFor(out), f.shown(r.Status)), err)
}
