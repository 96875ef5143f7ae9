package operate

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

// NewPause makes the command pause.
func NewPause(c *connect.Common) *cobra.Command {
	return pauseCommand(c, true, &cobra.Command{
		Use:   "pause group ID",
		Short: "Stop a node group from starting instances",
		Long: `Stop a node group from starting instances until it is resumed, also across restarts. Instances without a grant fail at
once; instances with a grant continue, and so does scale-in. Cluster Autoscaler is told that the group cannot grow, and
uses others. Pausing a paused group changes nothing.`,
		Example: "  liqo-autoscaler pause group standard",
	})
}

// NewResume makes the command resume.
func NewResume(c *connect.Common) *cobra.Command {
	return pauseCommand(c, false, &cobra.Command{
		Use:     "resume group ID",
		Short:   "Resume a paused node group",
		Long:    `Resume a paused node group. Resuming a group that is not paused changes nothing.`,
		Example: "  liqo-autoscaler resume group standard",
	})
}

func pauseCommand(c *connect.Common, paused bool, cmd *cobra.Command) *cobra.Command {
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) != 2 || args[0] != "group" {
			return fmt.Errorf("want `group` and the id of a node group, as in %q", cmd.Example[2:])
		}
		return nil
	}
	return c.Complete(cmd, func(ctx context.Context, t client.Client, out io.Writer, args []string) error {
		groups := flow.NewGroups(t, c.Hub, c.TaskQueue)
		if _, err := groups.Pause(ctx, args[1], paused); err != nil {
			return groups.Unknown(ctx, args[1], err)
		}
		now, err := groups.Snapshot(ctx, args[1])
		if err != nil {
			return err
		}
		state := "not paused"
		if now.Paused {
			state = "paused"
		}
		_, err = fmt.Fprintf(out, "node group %s is %s, target size %d\n", args[1], state, now.Target)
		return err
	})
}
