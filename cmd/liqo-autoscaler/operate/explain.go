package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.temporal.io/sdk/client"
	"k8s.io/client-go/util/workqueue"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/complete"
	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/explain"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/serve"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

// NewExplain returns the command explain.
func NewExplain(c *connect.Common) *cobra.Command {
	pod, instance, group := newExplainPod(c), newExplainInstance(c), newExplainGroup(c)
	cmd := &cobra.Command{
		Use:   "explain NAME",
		Short: "Explain why a pending pod gets no node, the history of an instance, or the decisions of a node group",
		Long: `Explain why a pending pod gets no node, the history of an instance, or the decisions of a node group. NAME is
NAMESPACE/NAME of a pod, the name of a Node, the name of an instance or its id in Cluster Autoscaler's log, or the
name of a node group. The subcommands pod, instance and group have more flags.`,
		Example: "  liqo-autoscaler explain shop/web-0\n  liqo-autoscaler explain lca-standard-towb8j-1-1\n" +
			"  liqo-autoscaler explain liqo://standard/standard-towb8j-1\n  liqo-autoscaler explain standard",
		ValidArgsFunction: complete.First(c, complete.Instances, complete.Groups),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("want pod NAMESPACE/NAME, instance NAME, or group NAME, or only the name")
			}
			return nil
		},
	}
	of := func(args []string) (*cobra.Command, error) {
		if isPod(args[0]) {
			return pod, nil
		}
		is := instance
		return is, c.Run(cmd.Context(), func(t client.Client) error {
			running, err := flow.NewGroups(t, c.Hub, c.TaskQueue).Running(cmd.Context())
			if slices.Contains(running, args[0]) {
				is = group
			}
			return err
		})
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		is, err := of(args)
		if err != nil {
			return err
		}
		return runAs(is, cmd, args)
	}
	var kubeconfig, output string
	serve.RegisterKubeconfig(cmd, &kubeconfig)
	registerExplained(cmd, &output)
	c.RegisterHub(cmd)
	cmd.AddCommand(pod, instance, group)
	return cmd
}

// runAs runs the subcommand `is` in place of its parent. It first copies to the subcommand the values of those flags
// of the parent that both commands have.
func runAs(is, parent *cobra.Command, args []string) (err error) {
	parent.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if own := is.Flags().Lookup(f.Name); own != nil && f.Changed {
			err = errors.Join(err, own.Value.Set(f.Value.String()))
		}
	})
	if err != nil {
		return err
	}
	is.SetContext(parent.Context())
	return is.RunE(is, args)
}

func newExplainPod(c *connect.Common) *cobra.Command {
	var f explainPodFlags
	cmd := &cobra.Command{
		Use:   "pod NAMESPACE/NAME | pod NAME | pod --file FILE",
		Short: "Explain why a pending pod gets no node",
		Long: `Explain why a pending pod gets no node: for each node group, why the pod does not fit the group's nodes, or why the
group does not grow. The command reads the pod, its namespace and events, the groups' Nodes, Cluster Autoscaler's
status and the published market with your kubeconfig, and the node groups from Temporal. It lists the objects that it
may not read. It does not evaluate rules that depend on other pods, such as anti-affinity. It exits with 0 for every
reason, and with 1 if the pod does not exist. NAME without a namespace is a pod in the namespace of your kubeconfig's
context.

With --file it explains how the node groups would serve pods that need not exist, and needs no cluster. The file has
Pods and workloads, which are assumed to be in an offloaded namespace, or PodTemplates, ProvisioningRequests and
CapacityBuffers. Cluster Autoscaler creates the pods of the last three kinds only in its memory, so they do not pass
Liqo's webhook. With -o json it prints a list.`,
		Example: "  liqo-autoscaler explain pod default/web-0\n  liqo-autoscaler explain pod default/web-0 -o json\n" +
			"  liqo-autoscaler explain pod --file pod.yaml --market-file .run/market.json",
		Args: func(cmd *cobra.Command, args []string) error {
			if f.file != "" {
				return cobra.NoArgs(cmd, args)
			}
			if len(args) != 1 {
				return errPodName
			}
			return nil
		},
		RunE: cli.Brief(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			worlds, err := f.worlds(ctx, string(c.Hub), args)
			if err != nil {
				return err
			}
			err = c.Run(ctx, func(t client.Client) error { return addGroups(ctx, c, t, worlds) })
			if err != nil {
				return err
			}
			return printExplained(cmd.OutOrStdout(), f.output, f.explained(worlds))
		}),
	}
	f.register(cmd)
	c.RegisterHub(cmd)
	return cmd
}

// addGroups reads the node groups and adds them to each world. It also adds the function that returns the event for
// which an instance waits.
func addGroups(ctx context.Context, c *connect.Common, t client.Client, worlds []explain.World) error {
	groups := flow.NewGroups(t, c.Hub, c.TaskQueue)
	snapshots, err := flow.NewEntities(t, c.Hub, c.TaskQueue).Groups(ctx)
	ended, unread := flow.NewHub(t, c.Hub, c.TaskQueue).Ended(ctx)
	now, waits := time.Now(), map[string]string{}
	for _, s := range snapshots {
		found := make([]string, len(s.Instances))
		workqueue.ParallelizeUntil(context.Background(), stepsAtOnce, len(s.Instances), func(n int) {
			s.Instances[n].Phase, found[n] = underWay(ctx, groups, s.Instances[n])
		})
		for n, i := range s.Instances {
			waits[i.Name] = found[n]
		}
	}
	for n := range worlds {
		w := &worlds[n]
		w.Groups, w.Ended, w.Now = snapshots, ended.Rows, now
		if unread != nil {
			w.Notes = append(w.Notes, fmt.Sprintf("the costs of ended groups this month: %v", unread))
		}
		w.Waits = func(_ string, i fleet.InstanceView) string { return waits[i.Name] }
	}
	return err
}

func newExplainInstance(c *connect.Common) *cobra.Command {
	var kubeconfig string
	cmd := &cobra.Command{
		Use:   "instance NAME | instance NODE | instance ID",
		Short: "Show the phase of an instance, and the history of each attempt",
		Long: `Show the phase of an instance, and the history of each attempt: the chosen provider, the reasons against the other
providers, the answer of the chosen provider, and the outcome. The command reads the histories of the workflows, as
long as Temporal keeps them. With your kubeconfig it also shows up to five pods for which Cluster Autoscaler requested
the instance, as long as the API server keeps the events about them. The command needs Temporal, but no worker and no
cluster. It exits with 1 when the instance is unknown. Instead of the instance's name you can give the name of its
Node, or its id in Cluster Autoscaler's log.`,
		Example:           "  liqo-autoscaler explain instance standard-towb8j-1",
		ValidArgsFunction: complete.First(c, complete.Instances),
	}
	serve.RegisterKubeconfig(cmd, &kubeconfig)
	return explains(c, cmd, func(ctx context.Context, t client.Client, name string) (explained, error) {
		i, err := explainInstance(ctx, c, t, instanceNamed(name))
		if err == nil {
			triggered(ctx, kubeconfig, &i)
		}
		return i, err
	})
}

func newExplainGroup(c *connect.Common) *cobra.Command {
	return explains(c, &cobra.Command{
		Use:   "group NAME",
		Short: "Show the last decisions of a node group",
		Long: `Show the last ` + strconv.Itoa(fleet.Choices) + ` decisions of a node group: for each attempt the chosen provider and the reason for the choice, and
for each failure its reason. The group keeps its decisions, so they outlive the histories that "explain instance"
reads. The command needs Temporal, but no worker and no cluster.`,
		Example:           "  liqo-autoscaler explain group standard",
		ValidArgsFunction: complete.First(c, complete.Groups),
	}, func(ctx context.Context, t client.Client, name string) (explained, error) {
		groups := flow.NewGroups(t, c.Hub, c.TaskQueue)
		choices, err := groups.Choices(ctx, name)
		return explain.OfGroup(name, choices), groups.Unknown(ctx, name, err)
	})
}

// explains completes the command cmd, which explains one object. The argument of the command is the name of the
// object. explains sets Args and RunE. The function read reads the explanation from Temporal.
func explains(c *connect.Common, cmd *cobra.Command,
	read func(ctx context.Context, t client.Client, name string) (explained, error)) *cobra.Command {
	var output string
	cmd.Args = cobra.ExactArgs(1)
	registerExplained(cmd, &output)
	return c.Complete(cmd, func(ctx context.Context, t client.Client, out io.Writer, args []string) error {
		found, err := read(ctx, t, args[0])
		if err != nil {
			return err
		}
		return printExplained(out, output, found)
	})
}

// explainInstance reads the instance's entry in its group's snapshot, and the histories of its workflows, and
// combines them.
func explainInstance(ctx context.Context, c *connect.Common, t client.Client, name string) (explain.Instance, error) {
	snapshots, err := flow.NewEntities(t, c.Hub, c.TaskQueue).Groups(ctx)
	if err != nil {
		return explain.Instance{}, err
	}
	groups := flow.NewGroups(t, c.Hub, c.TaskQueue)
	var records []explain.Record
	for _, kind := range []fleet.DriverKind{fleet.ScaleOut, fleet.ScaleIn} {
		runs, err := groups.DriverHistories(ctx, kind, name)
		if err != nil {
			return explain.Instance{}, err
		}
		for _, events := range runs {
			records = append(records, explain.Records(string(kind)+"/"+name, events)...)
		}
	}
	for _, s := range snapshots {
		for n := range s.Instances {
			if v := &s.Instances[n]; v.Name == name {
				var waits string
				v.Phase, waits = underWay(ctx, groups, *v)
				return explain.OfInstance(name, s.Group, v, waits, records), nil
			}
		}
	}
	if len(records) == 0 {
		return explain.Instance{}, fmt.Errorf("no instance %s: no node group of hub %s lists it, and Temporal has no "+
			"history of it (any more)", name, c.Hub)
	}
	return explain.OfInstance(name, "", nil, "", records), nil
}
