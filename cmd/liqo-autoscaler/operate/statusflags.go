package operate

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/show"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
)

// register adds the flags for selection and order.
func (f *statusFlags) register(c *connect.Common, cmd *cobra.Command) {
	registerGroups(c, cmd, &f.Groups)
	flags := cmd.Flags()
	flags.StringSliceVar(&f.Providers, "provider", nil, "only instances on these providers: Liqo cluster ids, names of "+
		"offers, or patterns")
	_ = cmd.RegisterFlagCompletionFunc("provider", completes(c, providerNames))
	flags.StringSliceVar(&f.Phases, "phase", nil, "only instances in these phases: "+strings.Join(show.Phases, ", "))
	_ = cmd.RegisterFlagCompletionFunc("phase", cobra.FixedCompletions(show.Phases, cobra.ShellCompDirectiveNoFileComp))
	flags.StringVar(&f.sort, "sort", "", "order of groups and instances: "+strings.Join(show.Orders, ", ")+
		"; the oldest and the most expensive first")
	_ = cmd.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions(show.Orders, cobra.ShellCompDirectiveNoFileComp))
}

// registerGroups adds the flag that selects node groups.
func registerGroups(c *connect.Common, cmd *cobra.Command, groups *[]string) {
	cmd.Flags().StringSliceVar(groups, "group", nil, "only these node groups: names or patterns")
	_ = cmd.RegisterFlagCompletionFunc("group", completes(c, groupNames))
}
