package operate

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

// completionBound bounds the time that a shell waits for names.
const completionBound = 2 * time.Second

// completion is cobra's type of a completion function.
type completion = func(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective)

// names reads the names of one kind of object from Temporal.
type names func(ctx context.Context, c *connect.Common, t client.Client) ([]string, error)

func groupNames(ctx context.Context, c *connect.Common, t client.Client) ([]string, error) {
	return flow.NewGroups(t, c.Hub, c.TaskQueue).Running(ctx)
}

// providerNames reads the ids of providers, and the names of their offers.
func providerNames(ctx context.Context, c *connect.Common, t client.Client) (ids []string, err error) {
	providers, err := flow.NewEntities(t, c.Hub, c.TaskQueue).Providers(ctx)
	for _, p := range providers {
		ids = append(ids, p.ID)
		if p.Offer != nil && p.Offer.Name != p.ID {
			ids = append(ids, p.Offer.Name)
		}
	}
	return ids, err
}

func instanceNames(ctx context.Context, c *connect.Common, t client.Client) (instances []string, err error) {
	groups, err := flow.NewEntities(t, c.Hub, c.TaskQueue).Groups(ctx)
	for _, g := range groups {
		for _, i := range g.Instances {
			instances = append(instances, i.Name)
		}
	}
	return instances, err
}

// completes returns the completion of an argument or a flag with the names in Temporal. When Temporal does not respond
// in time, it offers no names.
func completes(c *connect.Common, reads ...names) completion {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionBound)
		defer cancel()
		var found []string
		err := c.Run(ctx, func(t client.Client) error {
			for _, read := range reads {
				more, err := read(ctx, c, t)
				if err != nil {
					return err
				}
				found = append(found, more...)
			}
			return nil
		})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		slices.Sort(found)
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// completesSecond completes the first argument with fixed words, and the second with the names for the first argument.
func completesSecond(c *connect.Common, words map[string]names) completion {
	return func(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			var first []string
			for word := range words {
				first = append(first, word)
			}
			slices.Sort(first)
			return first, cobra.ShellCompDirectiveNoFileComp
		}
		if read := words[args[0]]; read != nil && len(args) == 1 {
			return completes(c, read)(cmd, args, text)
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}
