package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/serve/parts"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

type setCurrentFlags struct {
	version     parts.DeploymentVersion
	unversioned bool
	wait        time.Duration
}

func newSetCurrentVersion(c *connect.Common) *cobra.Command {
	var f setCurrentFlags
	cmd := &cobra.Command{
		Use:   "set-current-version",
		Short: "Make one version of the workers the current one, and show all versions",
		Long: `Make one version of the workers the current one, which gets all new work, and show all versions. Scale-outs and peerings
under way stay pinned to their version; its workers must stay until it is drained. You can run it again at any time.`,
		Example: "  liqo-autoscaler temporal set-current-version --deployment-name liqo-autoscaler --wait 5m",
		Args:    cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error {
			if !f.version.Given() {
				return errors.New("which workers: give --deployment-name")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			v, err := f.version.Of()
			switch {
			case err != nil:
				return err
			case f.unversioned:
				v.BuildID = ""
			}
			return c.Ask(cmd.Context(), func(t client.Client) error {
				d := t.WorkerDeploymentClient().GetHandle(v.DeploymentName)
				if err := setCurrent(cmd.Context(), d, v.BuildID, c.Hub.TaskQueue(c.TaskQueue), f.wait,
					cmd.ErrOrStderr()); err != nil {
					return err
				}
				return showVersions(cmd.Context(), d, cmd.OutOrStdout())
			})
		},
	}
	f.version.Register(cmd)
	c.RegisterHub(cmd)
	cmd.Flags().BoolVar(&f.unversioned, "unversioned", false, "give all new work to workers without --deployment-name")
	cmd.Flags().DurationVar(&f.wait, "wait", 0, "how long to wait for workers of that version")
	return cmd
}

// setCurrent makes a version the current one once its workers poll every lane; "" are workers without versioning.
func setCurrent(ctx context.Context, d client.WorkerDeploymentHandle, build, queue string, limit time.Duration,
	errOut io.Writer) error {
	return cli.Patiently(ctx, limit, errOut, func() (again bool, err error) {
		if err = polls(ctx, d, build, queue); err == nil {
			_, err = d.SetCurrentVersion(ctx, client.WorkerDeploymentSetCurrentVersionOptions{BuildID: build})
		}
		return true, err
	})
}

// polls fails while a version has not polled every lane. Nobody can tell that of workers without versioning.
func polls(ctx context.Context, d client.WorkerDeploymentHandle, build, queue string) error {
	if build == "" {
		return nil
	}
	v, err := d.DescribeVersion(ctx, client.WorkerDeploymentDescribeVersionOptions{BuildID: build})
	var missing *serviceerror.NotFound
	switch {
	case errors.As(err, &missing):
		return fmt.Errorf("no worker of version %s has come: start one with --deployment-name and this --build-id", build)
	case err != nil:
		return err
	}
	var lack []string
	for _, lane := range workflows.Lanes {
		name := lane.Queue(queue)
		if !slices.ContainsFunc(v.Info.TaskQueuesInfos,
			func(q client.WorkerDeploymentTaskQueueInfo) bool { return q.Name == name }) {
			lack = append(lack, name)
		}
	}
	if len(lack) > 0 {
		return fmt.Errorf("no worker of version %s has polled %s: is it of this hub and task queue?", build,
			strings.Join(lack, ", "))
	}
	return nil
}

// showVersions prints every version with what it is there for.
func showVersions(ctx context.Context, handle client.WorkerDeploymentHandle, out io.Writer) error {
	d, err := handle.Describe(ctx, client.WorkerDeploymentDescribeOptions{})
	if err != nil {
		return err
	}
	now := d.Info.RoutingConfig.CurrentVersion
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "VERSION\tSTATUS\tITS WORKERS")
	if now == nil {
		fmt.Fprintln(table, "none\tcurrent\tthose without --deployment-name")
	}
	slices.SortFunc(d.Info.VersionSummaries, func(a, b client.WorkerDeploymentVersionSummary) int {
		return b.CreateTime.Compare(a.CreateTime)
	})
	for _, v := range d.Info.VersionSummaries {
		status, workers := "inactive", "get nothing to do"
		switch {
		case now != nil && *now == v.Version:
			status, workers = "current", "get all that is new"
		case v.DrainageStatus == client.WorkerDeploymentVersionDrainageStatusDraining:
			status, workers = "draining", "finish what they began: keep them"
		case v.DrainageStatus == client.WorkerDeploymentVersionDrainageStatusDrained:
			status, workers = "drained", "may go"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", v.Version.BuildID, status, workers)
	}
	return table.Flush()
}
