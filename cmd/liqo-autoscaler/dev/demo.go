package dev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/complete"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

type demoFlags struct {
	address, group, world string
	keep, giveBack        bool
	timeout               time.Duration
}

// NewDemo returns the command demo.
func NewDemo(c *connect.Common) *cobra.Command {
	var f demoFlags
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Drive one scale-out and one scale-in through the gRPC API, as Cluster Autoscaler would",
		Long: `Drive one scale-out and one scale-in through the gRPC API, as Cluster Autoscaler would, and show each phase as the node
group publishes it. The demo fails if the group's target size is not restored, or if objects remain in the simulated
world of --world. With --keep it ends after the scale-out, so that you can inspect the node. --return releases Ready and
failed instances, as Cluster Autoscaler would.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
			defer cancel()
			return demo(ctx, c, f, cmd.OutOrStdout())
		},
	}
	c.RegisterHub(cmd)
	cmd.Flags().StringVar(&f.address, "address", "127.0.0.1:8086", "address of the gRPC server")
	cmd.Flags().StringVar(&f.group, "group", "standard", "node group to scale")
	complete.Flag(c, cmd, "group", complete.Groups)
	cmd.Flags().BoolVar(&f.keep, "keep", false, "only scale out, and keep the node")
	cmd.Flags().BoolVar(&f.giveBack, "return", false, "only scale in: release every Ready or Failed instance of the group")
	cmd.MarkFlagsMutuallyExclusive("keep", "return")
	cmd.Flags().StringVar(&f.world, "world", "", "file of the simulated world, to check that it is empty at the end")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 5*time.Minute, "time after which the demo gives up")
	return cmd
}

func demo(ctx context.Context, c *connect.Common, f demoFlags, out io.Writer) error {
	conn, err := grpc.NewClient(f.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("connect to %s: %w", f.address, err)
	}
	defer conn.Close()
	t, target, err := c.Dial(slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer t.Close()
	if err = target.Reach(ctx); err == nil {
		err = target.Check(ctx, t)
	}
	if err != nil {
		return err
	}
	d := &demonstration{ca: protos.NewCloudProviderClient(conn), groups: flow.NewGroups(t, c.Hub, c.TaskQueue),
		group: f.group, out: out, began: time.Now()}
	if err := d.recordStart(ctx); err != nil {
		return err
	}
	if f.giveBack {
		return d.releaseAll(ctx, f.world)
	}
	if err := d.scaleOut(ctx); err != nil || f.keep {
		return err
	}
	if err := d.scaleIn(ctx); err != nil {
		return err
	}
	return d.checkClean(ctx, f.world)
}

type demonstration struct {
	ca     protos.CloudProviderClient
	groups *flow.Groups
	group  string
	out    io.Writer
	began  time.Time
	shown  map[string]fleet.Phase
	before map[string]fleet.Phase // the group's instances before the demo
	after  fleet.Position         // position of the last printed snapshot
}

func (d *demonstration) printf(format string, args ...any) {
	line := fmt.Sprintf("%7.2fs  "+format, append([]any{time.Since(d.began).Seconds()}, args...)...)
	fmt.Fprintln(d.out, strings.TrimRight(line, " "))
}

// recordStart stores the present instances of the group, and prints its target size.
func (d *demonstration) recordStart(ctx context.Context) error {
	if _, err := d.ca.Refresh(ctx, &protos.RefreshRequest{}); err != nil {
		return fmt.Errorf("refresh: %w (is \"make run\" up?)", err)
	}
	first, err := d.groups.Snapshot(ctx, d.group)
	if err != nil {
		return err
	}
	d.after, d.shown, d.before = first.Position(), map[string]fleet.Phase{}, map[string]fleet.Phase{}
	for _, i := range first.Instances {
		d.before[i.Name] = i.Phase
	}
	d.printf("NodeGroupTargetSize(%s) = %d", d.group, first.Target)
	return nil
}

func (d *demonstration) scaleOut(ctx context.Context) error {
	asked := time.Now()
	if _, err := d.ca.NodeGroupIncreaseSize(ctx, &protos.NodeGroupIncreaseSizeRequest{Id: d.group, Delta: 1}); err != nil {
		return fmt.Errorf("increase size: %w", err)
	}
	d.printf("NodeGroupIncreaseSize(%s, 1) answered in %s", d.group, time.Since(asked).Round(time.Millisecond))
	return d.follow(ctx, fleet.Ready)
}

func (d *demonstration) scaleIn(ctx context.Context) error {
	for name := range d.shown {
		id := fleet.InstanceID(d.group, name)
		asked := time.Now()
		if _, err := d.ca.NodeGroupDeleteNodes(ctx, &protos.NodeGroupDeleteNodesRequest{
			Id: d.group, Nodes: []*protos.ExternalGrpcNode{{Name: name, ProviderID: id}},
		}); err != nil {
			return fmt.Errorf("delete nodes: %w", err)
		}
		d.printf("NodeGroupDeleteNodes(%s) answered in %s", id, time.Since(asked).Round(time.Millisecond))
	}
	return d.follow(ctx, fleet.Released)
}

// releaseAll releases the group's Ready and Failed instances, one after another.
func (d *demonstration) releaseAll(ctx context.Context, world string) error {
	for _, name := range slices.Sorted(maps.Keys(d.before)) {
		phase := d.before[name]
		if phase != fleet.Ready && phase != fleet.Failed {
			continue
		}
		delete(d.before, name)
		d.shown = map[string]fleet.Phase{name: phase}
		if err := d.scaleIn(ctx); err != nil {
			return err
		}
	}
	return d.checkClean(ctx, world)
}

// follow prints each phase of the demo's instance as the group publishes it, until the instance reaches the wanted
// phase.
func (d *demonstration) follow(ctx context.Context, want fleet.Phase) error {
	reached := errors.New("reached")
	err := d.groups.Follow(ctx, d.group, d.after, func(s fleet.Snapshot) error {
		d.after = s.Position()
		listed := map[string]bool{}
		for _, i := range s.Instances {
			if _, ok := d.before[i.Name]; ok {
				continue
			}
			listed[i.Name] = true
			changed := d.shown[i.Name] != i.Phase
			if changed {
				d.shown[i.Name] = i.Phase
				d.printf("  %s  %-11s  target %d  %s", i.Name, i.Phase, s.Target, i.Provider)
			}
			switch {
			case i.Phase == fleet.Failed && changed:
				return fmt.Errorf("instance %s failed: %s: %s\nCluster Autoscaler would delete it now: "+
					"liqo-autoscaler demo --return --group %s", i.Name, i.Failure.Code, i.Failure.Message, d.group)
			case i.Phase == want:
				return reached
			}
		}
		for name := range d.shown {
			if !listed[name] {
				d.printf("  %s  %-11s  target %d", name, fleet.Released, s.Target)
				return reached
			}
		}
		return nil
	})
	switch {
	case errors.Is(err, reached):
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("the demo has stopped waiting (%w); its work continues: liqo-autoscaler status", context.Cause(ctx))
	}
	return err
}

// checkClean checks that no object of the demo's instances remains.
func (d *demonstration) checkClean(ctx context.Context, world string) error {
	if _, err := d.ca.Refresh(ctx, &protos.RefreshRequest{}); err != nil {
		return fmt.Errorf("refresh: %w", err)
	}
	size, err := d.ca.NodeGroupTargetSize(ctx, &protos.NodeGroupTargetSizeRequest{Id: d.group})
	if err != nil {
		return fmt.Errorf("target size: %w", err)
	}
	d.printf("NodeGroupTargetSize(%s) = %d", d.group, size.TargetSize)
	if int(size.TargetSize) != len(d.before) {
		return fmt.Errorf("the target size is %d, but was %d before the demo", size.TargetSize, len(d.before))
	}
	if world == "" || len(d.before) > 0 {
		return nil
	}
	w, err := sim.Open(world)
	if err != nil {
		return err
	}
	if err := cli.WaitFor(ctx, time.Minute, func() error {
		s, err := w.Snapshot()
		if err != nil {
			return err
		}
		if left := s.Counts(); left != (sim.Counts{}) {
			return fmt.Errorf("the simulated world is not empty: %+v", left)
		}
		return nil
	}); err != nil {
		return err
	}
	d.printf("the simulated world is empty: no peering, slice, virtual node or node is left in either cluster")
	return nil
}
