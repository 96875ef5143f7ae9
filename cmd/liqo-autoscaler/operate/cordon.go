package operate

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

// NewCordon makes the command cordon.
func NewCordon(c *connect.Common) *cobra.Command {
	return cordonCommand(c, true, &cobra.Command{
		Use:   "cordon provider ID",
		Short: "Stop creating nodes on a provider",
		Long: `Stop creating nodes on a provider until it is uncordoned, also across restarts. Its nodes stay, and attempts that have a
grant continue. Instances that wait for it switch to another provider, which does not count as a failure. Needs a
worker. Cordoning a cordoned provider changes nothing; a provider that has not been used yet can be cordoned too.`,
		Example: "  liqo-autoscaler cordon provider milan",
	})
}

// NewUncordon makes the command uncordon.
func NewUncordon(c *connect.Common) *cobra.Command {
	return cordonCommand(c, false, &cobra.Command{
		Use:     "uncordon provider ID",
		Short:   "Use a cordoned provider again",
		Long:    `Use a cordoned provider again. Needs a worker. Uncordoning one that is not cordoned changes nothing.`,
		Example: "  liqo-autoscaler uncordon provider milan",
	})
}

func cordonCommand(c *connect.Common, on bool, cmd *cobra.Command) *cobra.Command {
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) != 2 || args[0] != "provider" {
			return fmt.Errorf("want `provider` and its Liqo cluster id, as in %q", cmd.Example[2:])
		}
		if !fleet.ValidProviderID(args[1]) {
			return fmt.Errorf("%q is no Liqo cluster id: `liqo-autoscaler offers` shows them", args[1])
		}
		return nil
	}
	return c.Complete(cmd, func(ctx context.Context, t client.Client, out io.Writer, args []string) error {
		s, err := flow.NewEntities(t, c.Hub, c.TaskQueue).Cordon(ctx, args[1], on)
		if err != nil {
			return fmt.Errorf("provider %s does not say so yet, does a worker run? %w", args[1], err)
		}
		state := "not cordoned"
		if !s.Cordoned.IsZero() {
			state = "cordoned"
		}
		_, err = fmt.Fprintf(out, "provider %s is %s, %d held, peering %s\n", args[1], state, len(s.Holds), s.Phase)
		return err
	})
}
