package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"
	"k8s.io/client-go/util/workqueue"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/show"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

// readTimeout bounds one look at everything.
const readTimeout = 30 * time.Second

type statusFlags struct {
	groups     []string
	output     string
	watch      bool
	kubeconfig string
	market     published
}

func newStatus(c *common) *cobra.Command {
	var f statusFlags
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the node groups and their instances",
		Long: `Show the node groups and their instances as the groups last published them, which groups do not grow or are not as
they are configured, and the conditions of providers. It needs Temporal, but no worker and no cluster. With access to
the cluster it also knows what the next node would cost, for limits of spending, and shows what makes Cluster Autoscaler
misjudge groups, as the worker published it: nodes that differ from what it was told, and pending pods that select by a
label that differs among a group's providers. -o wide has more columns and does not shorten WHY.

With --watch it shows the node groups, instances, offers and last changes on a terminal, and redraws them when something
changes, until it is interrupted. Elsewhere it prints a line for each change; with -o json an object per line.`,
		Example: "  liqo-autoscaler status\n  liqo-autoscaler status --group gpu -o wide\n  liqo-autoscaler status --watch",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return c.ask(cmd.Context(), func(t client.Client) error {
				groups := flow.NewGroups(t, c.hub, c.taskQueue)
				entities := flow.NewEntities(t, c.hub, c.taskQueue)
				size := terminal(cmd.OutOrStdout())
				switch {
				case f.watch && size != nil && f.output != "json":
					return watchScreen(cmd.Context(), c, groups, entities, f, cmd.OutOrStdout(), size)
				case f.watch:
					return streamStatus(cmd.Context(), groups, f, cmd.OutOrStdout(), cmd.ErrOrStderr())
				}
				ctx, cancel := context.WithTimeout(cmd.Context(), readTimeout)
				defer cancel()
				m := f.market.ask(ctx, f.kubeconfig, string(c.hub), cmd.ErrOrStderr())
				return printStatus(ctx, groups, entities, f, m, cmd.OutOrStdout())
			})
		},
	}
	c.registerHub(cmd)
	cmd.Flags().StringSliceVar(&f.groups, "group", nil, "only these node groups")
	cmd.Flags().StringVarP(&f.output, "output", "o", "table", "what to print: "+strings.Join(show.Formats, ", "))
	registerKubeconfig(cmd, &f.kubeconfig)
	f.market.register(cmd)
	cmd.Flags().BoolVarP(&f.watch, "watch", "w", false, "go on showing what changes")
	return cmd
}

func (f statusFlags) check() error {
	if f.watch && f.output == "yaml" {
		return errors.New("--watch prints tables or JSON lines: use another --output")
	}
	return show.CheckFormat(f.output)
}

// printStatus prints what can be read; what cannot is the error.
func printStatus(ctx context.Context, groups *flow.Groups, entities *flow.Entities, f statusFlags,
	m *market.Market, out io.Writer) error {
	status, _, err := f.read(ctx, groups, entities, m)
	if len(status.Groups) == 0 && err != nil {
		return err
	}
	waits(ctx, groups, status.Instances)
	return errors.Join(show.Print(out, f.output, show.Look{Now: time.Now()}, status), err)
}

// read reads what can be read, but not what the instances wait for; what cannot is the error. The market may be nil.
func (f statusFlags) read(ctx context.Context, groups *flow.Groups, entities *flow.Entities,
	m *market.Market) (show.Status, []fleet.ProviderSnapshot, error) {
	snapshots, err := f.snapshots(ctx, groups)
	if len(snapshots) == 0 && err != nil {
		return show.Status{}, nil, err
	}
	providers, unread := entities.Providers(ctx)
	status := show.StatusOf(snapshots...).With(providers)
	status.Refusing = show.RefusingOf(providers)
	if m != nil {
		status = status.Priced(snapshots, m.Candidates(), time.Now())
		status.Findings = m.Findings.Of(f.groups)
	}
	return status, providers, errors.Join(err, unread)
}

// waits fills in what instances have under way.
func waits(ctx context.Context, groups *flow.Groups, instances []show.Instance) {
	workqueue.ParallelizeUntil(context.Background(), stepsAtOnce, len(instances), func(n int) {
		i := &instances[n]
		phase, waits := underWay(ctx, groups, fleet.InstanceView{Name: i.Name, Phase: i.Phase, Provider: i.Provider})
		if i.Phase = phase; waits != "" {
			i.Waits = "waiting for " + waits
		}
	})
}

// stepsAtOnce is how many instances are asked at a time what they have under way.
const stepsAtOnce = 20

// underWay is where an instance is by the step that it has under way, and what that waits for, as far as it can be
// told: steps come and go. A group does not publish Joining.
func underWay(ctx context.Context, groups *flow.Groups, i fleet.InstanceView) (fleet.Phase, string) {
	w, err := groups.Waits(ctx, i)
	switch {
	case err != nil:
		return i.Phase, ""
	case i.Phase == fleet.Peering && w.Step == activities.NameJoin:
		return fleet.Joining, w.String()
	default:
		return i.Phase, w.String()
	}
}

// snapshots reads the groups that were asked for, or all that run. It returns what it could read with the error.
func (f statusFlags) snapshots(ctx context.Context, groups *flow.Groups) ([]fleet.Snapshot, error) {
	names, err := f.names(ctx, groups)
	if err != nil {
		return nil, err
	}
	return readAll(names, len(f.groups) == 0,
		func(name string) (fleet.Snapshot, error) {
			s, err := groups.Snapshot(ctx, name)
			s.Cost, _ = s.Cost.Until(time.Now())
			return s, f.known(ctx, groups, name, err)
		})
}

// known says which groups run where somebody asked for one that does not.
func (f statusFlags) known(ctx context.Context, groups *flow.Groups, name string, err error) error {
	if len(f.groups) == 0 {
		return err
	}
	return groups.Unknown(ctx, name, err)
}

func (f statusFlags) names(ctx context.Context, groups *flow.Groups) ([]string, error) {
	if len(f.groups) > 0 {
		return slices.Compact(slices.Sorted(slices.Values(f.groups))), nil
	}
	return groups.Running(ctx)
}

// readParallel is how many entities are read at a time.
const readParallel = 8

// readAll reads each name, and returns what could be read, in the order of the names, with the errors of the others.
// listed says that the names are from Temporal's index, which lags behind: what does not run any more is left out.
func readAll[T any](names []string, listed bool, read func(name string) (T, error)) ([]T, error) {
	results, errs := make([]T, len(names)), make([]error, len(names))
	workqueue.ParallelizeUntil(context.Background(), readParallel, len(names), func(i int) {
		results[i], errs[i] = read(names[i])
	})
	var out []T
	for i := range names {
		switch {
		case errs[i] == nil:
			out = append(out, results[i])
		case listed && errors.Is(errs[i], fleet.ErrNotRunning):
			errs[i] = nil
		default:
			errs[i] = fmt.Errorf("read %s: %w", names[i], errs[i])
		}
	}
	return out, errors.Join(errs...)
}
