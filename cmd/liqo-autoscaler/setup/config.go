package setup

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/show"
	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver/config"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli/output"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
)

// NewConfig returns the command config.
func NewConfig(c *connect.Common) *cobra.Command {
	cmd := cli.Parent("config", "Check and show the node-group config, and generate Cluster Autoscaler's",
		newConfigValidate(), newConfigDiff(c), newConfigView(), newConfigSchema(), newCloudConfig())
	cmd.PersistentPreRun = cli.EndAtOnce
	return cmd
}

func newConfigValidate() *cobra.Command {
	return &cobra.Command{
		Use:   "validate FILE",
		Short: "Check a node-group config and print all errors, one per line",
		Long: `Check a node-group config and print all errors, one per line. To check a file of offers use
"liqo-autoscaler offers validate", and to check the values of the chart use "helm lint".`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := config.Load(args[0])
			if err != nil {
				return err
			}
			return summarise(cmd.OutOrStdout(), cfg)
		},
	}
}

// summarise prints a short summary of a valid config.
func summarise(out io.Writer, cfg config.Config) error {
	var b strings.Builder
	fmt.Fprintf(&b, "ok: hub %s, %d node groups, limits %s\n", cfg.Hub, len(cfg.NodeGroups), limitsText(cfg))
	for _, g := range cfg.NodeGroups {
		for _, base := range g.Bases() {
			summariseGroup(&b, base)
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// summariseGroup prints one line for a group, or for the groups that are derived from offers.
func summariseGroup(b *strings.Builder, g config.Base) {
	each := ""
	if key, byLabel := g.Per.Label(); byLabel {
		g.ID, each = g.ID+"-<"+key+">", " for each value of the label"
	} else if g.Per.Derives() {
		g.ID, each = g.ID+"-<"+string(g.Per)+">", " on each provider that matches"
	}
	fmt.Fprintf(b, "  %s: %d to %d nodes of %s%s", g.ID, g.Min, g.Max, show.Resources(g.Shape), each)
	before := ", taints "
	for _, t := range g.NodeTaints() {
		b.WriteString(before + t.ToString())
		before = " "
	}
	b.WriteByte('\n')
}

func limitsText(cfg config.Config) string {
	var parts []string
	if n := cfg.Limits.Nodes; n != nil {
		parts = append(parts, fmt.Sprintf("nodes=%d", *n))
	}
	if q := cfg.Limits.CPU; q != nil {
		parts = append(parts, "cpu="+q.String())
	}
	if q := cfg.Limits.Memory; q != nil {
		parts = append(parts, "memory="+q.String())
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ",")
}

func newConfigView() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "view FILE",
		Short: "Print a node-group config with all defaults applied",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if format != "yaml" && format != "json" {
				return fmt.Errorf("--output %q: use yaml or json", format)
			}
			cfg, err := config.Load(args[0])
			if err != nil {
				return err
			}
			if format == "json" {
				return output.JSON(cmd.OutOrStdout(), cfg)
			}
			return output.YAML(cmd.OutOrStdout(), cfg)
		},
	}
	cmd.Flags().StringVarP(&format, "output", "o", "yaml", "what to print: yaml or json")
	cli.Values(cmd, "output", "yaml", "json")
	return cmd
}

func newConfigSchema() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the node-group config, for editors",
		Long: `Print the JSON Schema (2020-12) of the node-group config. Editors with the YAML language server use it when the file
begins with:

  # yaml-language-server: $schema=nodegroups.schema.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return output.JSON(cmd.OutOrStdout(), config.Schema()) },
	}
}
