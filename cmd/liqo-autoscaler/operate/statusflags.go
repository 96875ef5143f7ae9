package operate

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/complete"
	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/show"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
)

// register adds the flags for selection and order.
func (f *statusFlags) register(c *connect.Common, cmd *cobra.Command) {
	registerGroups(c, cmd, &f.Groups)
	flags := cmd.Flags()
	flags.StringSliceVar(&f.Providers, "provider", nil, "only instances on these providers: Liqo cluster ids, names of "+
		"offers, or patterns")
	complete.Flag(c, cmd, "provider", complete.Providers)
	flags.StringSliceVar(&f.Phases, "phase", nil, "only instances in these phases: "+strings.Join(show.Phases, ", "))
	cli.Values(cmd, "phase", show.Phases...)
	flags.StringVar(&f.sort, "sort", "", "order of groups and instances: "+strings.Join(show.Orders, ", ")+
		"; the oldest and the most expensive first")
	cli.Values(cmd, "sort", show.Orders...)
}

// registerGroups adds the flag that selects node groups.
func registerGroups(c *connect.Common, cmd *cobra.Command, groups *[]string) {
	cmd.Flags().StringSliceVar(groups, "group", nil, "only these node groups: names or patterns")
	complete.Flag(c, cmd, "group", complete.Groups)
}
