package operate

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/complete"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

// NewPause returns the command pause.
func NewPause(c *connect.Common) *cobra.Command {
	return pauseCommand(c, true, &cobra.Command{
		Use:   "pause group ID | observer",
		Short: "Stop a node group from starting instances, or stop the observer",
		Long: `Stop a node group from starting instances. The group stays paused until you resume it, even if processes restart.
Instances for which no capacity has been granted yet fail immediately. All other instances continue, and so does
scale-in. Cluster Autoscaler sees that the group cannot grow, and uses other groups. If the group is already paused,
the command changes nothing.

"pause observer" stops the observer. Until you resume the observer, it repairs nothing, removes no leftovers and
detects no dead provider.`,
		Example: "  liqo-autoscaler pause group standard\n  liqo-autoscaler pause observer",
	})
}

// NewResume returns the command resume.
func NewResume(c *connect.Common) *cobra.Command {
	return pauseCommand(c, false, &cobra.Command{
		Use:     "resume group ID | observer",
		Short:   "Resume a paused node group, or the observer",
		Long:    `Resume a paused node group, or the observer. If the group or the observer is not paused, nothing changes.`,
		Example: "  liqo-autoscaler resume group standard\n  liqo-autoscaler resume observer",
	})
}

func pauseCommand(c *connect.Common, paused bool, cmd *cobra.Command) *cobra.Command {
	cmd.Args = func(_ *cobra.Command, args []string) error {
		group, observer := len(args) == 2 && args[0] == "group", len(args) == 1 && args[0] == "observer"
		if !group && !observer {
			return fmt.Errorf("want `group` and the id of a node group, or `observer`, as in %q",
				strings.Split(cmd.Example, "\n")[0][2:])
		}
		return nil
	}
	cmd.ValidArgsFunction = complete.Second(c, map[string]complete.Names{"group": complete.Groups, "observer": nil})
	return c.Complete(cmd, func(ctx context.Context, t client.Client, out io.Writer, args []string) error {
		if args[0] == "observer" {
			if err := flow.NewHub(t, c.Hub, c.TaskQueue).PauseObserver(ctx, paused); err != nil {
				return err
			}
			_, err := fmt.Fprintf(out, "the observer of hub %s is %s\n", c.Hub.Name(), pausedOrNot(paused))
			return err
		}
		groups := flow.NewGroups(t, c.Hub, c.TaskQueue)
		if _, err := groups.Pause(ctx, args[1], paused); err != nil {
			return groups.Unknown(ctx, args[1], err)
		}
		now, err := groups.Snapshot(ctx, args[1])
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "node group %s is %s, target size %d\n", args[1], pausedOrNot(now.Paused), now.Target)
		return err
	})
}

func pausedOrNot(paused bool) string {
	if paused {
		return "paused"
	}
	return "not paused"
}
