package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver"
	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver/config"
	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver/derive"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli/output"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/serve"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

// changes is the output document of config diff.
type changes struct {
	Hub     string              `json:"hub"`
	Changes []grpcserver.Change `json:"changes"`
}

// Table implements output.Document.
func (c changes) Table(out io.Writer, style output.Style) error {
	if len(c.Changes) == 0 {
		_, err := fmt.Fprintf(out, "hub %s: the config changes no node group\n", c.Hub)
		return err
	}
	return style.Table(out, []string{"NODE GROUP", "EFFECT", "WHAT"}, output.Rows(c.Changes,
		func(c grpcserver.Change) []string { return []string{c.Group, string(c.Effect), c.Message} }))
}

// ineffective returns an error if some values of the config would have no effect.
func (c changes) ineffective() error {
	var groups []string
	for _, change := range c.Changes {
		if change.Effect == grpcserver.EffectNotInForce {
			groups = append(groups, change.Group)
		}
	}
	if len(groups) == 0 {
		return nil
	}
	return fmt.Errorf("some values would have no effect on %s", strings.Join(groups, ", "))
}

func newConfigDiff(c *connect.Common) *cobra.Command {
	var format, kubeconfig string
	var published serve.Published
	cmd := &cobra.Command{
		Use:   "diff FILE",
		Short: "Show the effect of a node-group config on the running groups",
		Long: `Show the effect that a node-group config would have in the gRPC server: the groups of its hub that the server would
add, retire or change. The command also shows the values that would have no effect (ChangeNotInForce), because a group
with nodes keeps its template. It does not compare the limits for all groups together, because the groups do not
publish them. Groups with the key per are derived from the published offers, which the command reads with your
kubeconfig or from --market-file. Without these offers it compares only the derived groups that run. The command needs
Temporal, but no worker, and changes nothing. It exits with 0 when every value takes effect, and with 1 when a value
would have no effect, or on an error.`,
		Example: "  liqo-autoscaler config diff nodegroups.yaml\n  liqo-autoscaler config diff nodegroups.yaml -o json",
		Args:    cobra.ExactArgs(1),
		RunE: cli.Brief(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			if err := output.CheckFormat(format); err != nil {
				return err
			}
			cfg, err := config.Load(args[0])
			if err != nil {
				return err
			}
			found := changes{Hub: cfg.Hub, Changes: []grpcserver.Change{}}
			err = c.Run(ctx, func(t client.Client) error {
				running, err := flow.NewEntities(t, workflows.Hub(cfg.Hub), c.TaskQueue).Groups(ctx)
				if err == nil {
					m := published.Ask(ctx, kubeconfig, cfg.Hub, cmd.ErrOrStderr())
					found.Changes = append(found.Changes, changesOf(cfg, running, m)...)
				}
				return err
			})
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			return errors.Join(output.Print(out, format, output.StyleFor(out), found), found.ineffective())
		}),
	}
	serve.RegisterKubeconfig(cmd, &kubeconfig)
	published.Register(cmd)
	cmd.Flags().StringVarP(&format, "output", "o", "table", "what to print: "+strings.Join(output.Formats, ", "))
	cli.Values(cmd, "output", output.Formats...)
	return cmd
}

// changesOf returns the changes that a config would cause. The market may be nil.
func changesOf(cfg config.Config, running []fleet.Snapshot, m *market.Market) []grpcserver.Change {
	derived := derivedOf(running, m)
	return grpcserver.Changes(running, derived.Expand(cfg.NodeGroups), derived.Derives)
}

// derivedOf derives groups in the same way as a gRPC server that starts while these groups run.
func derivedOf(running []fleet.Snapshot, m *market.Market) *derive.Groups {
	var inForce []fleet.GroupSpec
	for _, s := range running {
		if s.Spec != nil {
			inForce = append(inForce, *s.Spec)
		}
	}
	derived := &derive.Groups{Log: slog.New(slog.DiscardHandler),
		InForce: func() ([]fleet.GroupSpec, bool) { return inForce, true }}
	if m != nil {
		derived.Market = func() (market.Market, bool) { return *m, true }
	}
	return derived
}
