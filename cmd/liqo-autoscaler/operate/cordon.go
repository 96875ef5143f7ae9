package operate

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/complete"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/serve"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

// NewCordon returns the command cordon.
func NewCordon(c *connect.Common) *cobra.Command {
	return cordonCommand(c, true, &cobra.Command{
		Use:   "cordon provider NAME",
		Short: "Stop creating nodes on a provider",
		Long: `Stop creating nodes on a provider. The provider stays cordoned until you uncordon it, even if processes restart. Its
nodes stay, and attempts for which capacity has been granted continue. Instances that still wait for the provider
switch to another one; this does not count as a failure. The command needs a worker. If the provider is already
cordoned, it changes nothing.

NAME is the provider's Liqo cluster id or the name of its offer. The command refuses a name that belongs neither to an
offer nor to a provider in use. With --unknown it accepts such a name, to cordon a provider before its first offer.`,
		Example: "  liqo-autoscaler cordon provider milan",
	})
}

// NewUncordon returns the command uncordon.
func NewUncordon(c *connect.Common) *cobra.Command {
	return cordonCommand(c, false, &cobra.Command{
		Use:   "uncordon provider NAME",
		Short: "Use a cordoned provider again",
		Long: `Use a cordoned provider again. NAME is the provider's Liqo cluster id or the name of its offer. The command needs a
worker. If the provider is not cordoned, it changes nothing.`,
		Example: "  liqo-autoscaler uncordon provider milan",
	})
}

func cordonCommand(c *connect.Common, on bool, cmd *cobra.Command) *cobra.Command {
	var published serve.Published
	var kubeconfig string
	var unknown bool
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) != 2 || args[0] != "provider" {
			return fmt.Errorf("want `provider` and its Liqo cluster id, or the name of its offer, as in %q", cmd.Example[2:])
		}
		if !fleet.ValidProviderID(args[1]) {
			return fmt.Errorf("%q is neither a Liqo cluster id nor the name of an offer: `liqo-autoscaler offers` lists both",
				args[1])
		}
		return nil
	}
	cmd.ValidArgsFunction = complete.Second(c, map[string]complete.Names{"provider": complete.Providers})
	serve.RegisterKubeconfig(cmd, &kubeconfig)
	published.Register(cmd)
	cmd.Flags().BoolVar(&unknown, "unknown", false, "accept the id of a provider that has no offer and is not in use")
	return c.Complete(cmd, func(ctx context.Context, t client.Client, out io.Writer, args []string) error {
		entities := flow.NewEntities(t, c.Hub, c.TaskQueue)
		m := published.Ask(ctx, kubeconfig, string(c.Hub), cmd.ErrOrStderr())
		id, err := providerOf(ctx, args[1], serve.OffersIn(m), entities, unknown)
		if err != nil {
			return err
		}
		s, err := entities.Cordon(ctx, id, on)
		if err != nil {
			return fmt.Errorf("provider %s has not confirmed it yet; does a worker run? %w", id, err)
		}
		state := "not cordoned"
		if !s.Cordoned.IsZero() {
			state = "cordoned"
		}
		_, err = fmt.Fprintf(out, "provider %s is %s, %d held, peering %s\n", id, state, len(s.Holds), s.Phase)
		return err
	})
}
