package providers

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/complete"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/serve/parts"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

// repinner deletes the pinned certificate authorities of a provider. The authorities that the provider presents next
// are then accepted and pinned.
type repinner interface {
	Repin(ctx context.Context, provider string) (forgot bool, err error)
}

func newOffersRepin(c *connect.Common) *cobra.Command {
	var f parts.BackendFlags
	cmd := &cobra.Command{
		Use:   "repin NAME",
		Short: "Accept a provider that was rebuilt or has a new certificate authority",
		Long: `Accept a provider that was rebuilt or has a new certificate authority. NAME is the offer's name or the provider's
cluster id. A peering pins the certificate authorities of its provider, and refuses a cluster with the same id and
other authorities. First make sure that the cluster really is the provider.`,
		Example: "  liqo-autoscaler offers repin milan --kubeconfig consumer.kubeconfig",
		Args:    cobra.ExactArgs(1),

		ValidArgsFunction: complete.First(c, complete.Providers),
		RunE: cli.Brief(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			logger, err := c.Logger(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			b, _, err := f.Backend(c.Hub)
			if err != nil {
				return err
			}
			pins, ok := b.(repinner)
			if !ok {
				return fmt.Errorf("--backend %s pins no providers", f.Kind)
			}
			provider, err := repin(ctx, c, pins, args[0])
			if err != nil {
				return err
			}
			logger.Info("provider repinned: the next certificate authority that it presents is pinned", "provider", provider,
				"hub", c.Hub)
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "Provider %s is accepted with its present certificate authority.\n",
				provider)
			return err
		}),
	}
	f.Register(cmd)
	c.RegisterHub(cmd)
	return cmd
}

// repin deletes the pins of the provider with the given id. If this id has no pins, it deletes the pins of the
// provider whose offer has the given name.
func repin(ctx context.Context, c *connect.Common, pins repinner, name string) (provider string, err error) {
	if forgot, err := pins.Repin(ctx, name); err != nil || forgot {
		return name, err
	}
	err = c.Run(ctx, func(t client.Client) error {
		states, err := flow.NewEntities(t, c.Hub, c.TaskQueue).Providers(ctx)
		for _, s := range states {
			if s.Offer == nil || s.Offer.Name != name || s.ID == name {
				continue
			}
			if forgot, err := pins.Repin(ctx, s.ID); err != nil || forgot {
				provider = s.ID
				return err
			}
		}
		return err
	})
	switch {
	case provider != "":
		return provider, err
	case err != nil:
		return "", fmt.Errorf("no pin exists for a provider %s, and offers cannot be read: %w", name, err)
	}
	return "", fmt.Errorf("no pin exists for a provider %s: it has no peering of this hub, or was repinned already",
		name)
}
