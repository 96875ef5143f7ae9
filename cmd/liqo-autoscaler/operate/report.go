package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/show"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

// NewReport returns the command report.
func NewReport(c *connect.Common) *cobra.Command {
	var f statusFlags
	var since string
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Show the cost of the nodes, by day, node group and provider",
		Long: `Show the cost of the nodes: sums by node group and provider as text, or the sums of each day as CSV. A node costs the
price that the offer had when the provider was chosen. It costs this price from Ready until its slice is returned.
Days begin at midnight UTC. A group keeps the costs of ` + strconv.Itoa(money.CostDays) + ` days, and so does the hub for groups that have ended; the
text shows the first day with data. With -o opencost-csv the command prints the current hourly cost of each node, for
OpenCost. The command needs Temporal and a worker, but no cluster.`,
		Example: "  liqo-autoscaler report --since 7d\n  liqo-autoscaler report --since 2026-11-01 -o csv",
		Args:    cobra.NoArgs,
		RunE: cli.Brief(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			now := time.Now()
			from, err := sinceDay(since, now)
			if err != nil {
				return err
			}
			if err := f.Check(); err != nil {
				return err
			}
			if !slices.Contains(show.ReportFormats, f.output) {
				return fmt.Errorf("--output %q: use %s", f.output, strings.Join(show.ReportFormats, ", "))
			}
			return c.Run(ctx, func(t client.Client) error {
				groups, hub := flow.NewGroups(t, c.Hub, c.TaskQueue), flow.NewHub(t, c.Hub, c.TaskQueue)
				if f.output == "opencost-csv" {
					return f.openCost(ctx, groups, now, cmd.OutOrStdout())
				}
				report, err := f.report(ctx, groups, hub, from, now)
				if len(report.Groups) == 0 && err != nil {
					return err
				}
				write := show.Report.Text
				if f.output == "csv" {
					write = show.Report.CSV
				}
				return errors.Join(write(report, cmd.OutOrStdout()), err)
			})
		}),
	}
	c.RegisterHub(cmd)
	registerGroups(c, cmd, &f.Groups)
	cmd.Flags().StringVar(&since, "since", "30d", "first day: a number of days that ends today, as in 30d, or a date, "+
		"as in 2026-11-01")
	cmd.Flags().StringVarP(&f.output, "output", "o", "text", "what to print: "+strings.Join(show.ReportFormats, ", "))
	cli.Values(cmd, "output", show.ReportFormats...)
	return cmd
}

// report reads the bills of the selected groups or, without a selection, of all groups that run or have ended. If it
// cannot read some bills, it returns the other bills and an error.
func (f statusFlags) report(ctx context.Context, groups *flow.Groups, hub *flow.Hub, from,
	now time.Time) (show.Report, error) {
	ended, errEnded := hub.Bills(ctx)
	names, err := f.names(ctx, groups)
	if err != nil {
		return show.Report{}, err
	}
	ended = slices.DeleteFunc(ended, func(b money.Bill) bool { return !show.Matches(f.Groups, b.Group) })
	running, err := connect.ReadAll(names, !f.exact(), func(name string) (money.Bill, error) {
		s, days, err := groups.Costs(ctx, name)
		b := s.Bill()
		b.Days = days
		if _, known := ended.Latest(name); known && errors.Is(err, fleet.ErrNotRunning) {
			return money.Bill{}, nil // the group has ended
		}
		return b, f.known(ctx, groups, name, err)
	})
	running = slices.DeleteFunc(running, func(b money.Bill) bool { return b.Group == "" })
	return show.ReportOf(from, now, running, ended), errors.Join(err, errEnded)
}

// openCost prints the present price of each node. It works without a worker.
func (f statusFlags) openCost(ctx context.Context, groups *flow.Groups, now time.Time, out io.Writer) error {
	snapshots, err := f.snapshots(ctx, groups)
	if len(snapshots) == 0 && err != nil {
		return err
	}
	return errors.Join(show.OpenCostCSV(out, now, snapshots), err)
}

// sinceDay parses the value of --since and returns the first day of the report.
func sinceDay(text string, now time.Time) (time.Time, error) {
	today := now.UTC().Truncate(24 * time.Hour)
	from, err := time.Parse(time.DateOnly, text)
	if count, isCount := strings.CutSuffix(text, "d"); isCount {
		var days int
		if days, err = strconv.Atoi(count); err == nil && days > 0 && days <= money.CostDays {
			return today.AddDate(0, 0, 1-days), nil
		}
		err = errors.New("not a number of days")
	}
	switch {
	case err != nil:
		return from, fmt.Errorf("--since %q: give 1d to %dd, or a date as 2026-11-01", text, money.CostDays)
	case from.After(today):
		return from, fmt.Errorf("--since %q: that day is in the future", text)
	}
	if first := today.AddDate(0, 0, -money.CostDays); from.Before(first) {
		return first, nil
	}
	return from, nil
}
