// Package complete completes arguments and flags in a shell.
package complete

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

// bound is the maximum time for which a shell waits for names.
const bound = 2 * time.Second

// Function is cobra's type of a completion function.
type Function = func(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective)

// Names reads the names of one kind of object from Temporal.
type Names func(ctx context.Context, c *connect.Common, t client.Client) ([]string, error)

// Groups reads the names of the node groups that run.
func Groups(ctx context.Context, c *connect.Common, t client.Client) ([]string, error) {
	return flow.NewGroups(t, c.Hub, c.TaskQueue).Running(ctx)
}

// Providers reads the ids of providers, and the names of their offers.
func Providers(ctx context.Context, c *connect.Common, t client.Client) (ids []string, err error) {
	providers, err := flow.NewEntities(t, c.Hub, c.TaskQueue).Providers(ctx)
	for _, p := range providers {
		ids = append(ids, p.ID)
		if p.Offer != nil && p.Offer.Name != p.ID {
			ids = append(ids, p.Offer.Name)
		}
	}
	return ids, err
}

// Instances reads the names of the instances of all node groups.
func Instances(ctx context.Context, c *connect.Common, t client.Client) (instances []string, err error) {
	groups, err := flow.NewEntities(t, c.Hub, c.TaskQueue).Groups(ctx)
	for _, g := range groups {
		for _, i := range g.Instances {
			instances = append(instances, i.Name)
		}
	}
	return instances, err
}

// First completes only the first argument. It reads the names from Temporal.
func First(c *connect.Common, reads ...Names) Function {
	return OnlyFirst(func(ctx context.Context) ([]string, error) { return ofTemporal(ctx, c, reads) })
}

// OnlyFirst completes only the first argument, with the names that the function read returns. If this function fails
// or does not return in time, OnlyFirst offers no names, and the shell does not offer names of files instead.
func OnlyFirst(read func(context.Context) ([]string, error)) Function {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return inTime(cmd, read)
	}
}

// Second completes two arguments: the first with fixed words, and the second with the names that belong to the first
// word.
func Second(c *connect.Common, words map[string]Names) Function {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			var first []string
			for word := range words {
				first = append(first, word)
			}
			slices.Sort(first)
			return first, cobra.ShellCompDirectiveNoFileComp
		}
		if read := words[args[0]]; read != nil && len(args) == 1 {
			return inTime(cmd, func(ctx context.Context) ([]string, error) { return ofTemporal(ctx, c, []Names{read}) })
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// Flag completes the value of the command's flag. It reads the names from Temporal.
func Flag(c *connect.Common, cmd *cobra.Command, flag string, reads ...Names) {
	_ = cmd.RegisterFlagCompletionFunc(flag, // fails only for a flag that does not exist
		func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return inTime(cmd, func(ctx context.Context) ([]string, error) { return ofTemporal(ctx, c, reads) })
		})
}

// NoFiles stops the shell from completing arguments as names of files, for each command below root whose usage does
// not contain FILE. A command that already has a completion function keeps it.
func NoFiles(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		if cmd.ValidArgsFunction == nil && !strings.Contains(cmd.Use, "FILE") {
			cmd.ValidArgsFunction = cobra.NoFileCompletions
		}
		NoFiles(cmd)
	}
}

// inTime returns the names from the function read, sorted. It returns no names if the function fails or does not
// return in time.
func inTime(cmd *cobra.Command, read func(context.Context) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), bound)
	defer cancel()
	names, err := read(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	slices.Sort(names)
	return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
}

func ofTemporal(ctx context.Context, c *connect.Common, reads []Names) (found []string, err error) {
	err = c.Run(ctx, func(t client.Client) error {
		for _, read := range reads {
			more, err := read(ctx, c, t)
			if err != nil {
				return err
			}
			found = append(found, more...)
		}
		return nil
	})
	return found, err
}
