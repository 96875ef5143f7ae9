package setup

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"
	"k8s.io/client-go/kubernetes"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/serve"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/serve/parts"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

// newAdoptHub returns the command temporal adopt-hub.
func newAdoptHub(c *connect.Common) *cobra.Command {
	var kubeconfig string
	cmd := &cobra.Command{
		Use:   "adopt-hub",
		Short: "Assign a hub to this cluster, after the cluster was rebuilt",
		Long: `Assign a hub to this cluster. A hub belongs to the cluster whose worker first used it. The hub's processes in any
other cluster exit before they change anything. A cluster is identified by the UID of its namespace kube-system. A
rebuilt cluster has another UID, so its processes exit until this command assigns the hub to it. First make sure that
no process of the former cluster runs: otherwise each cluster would treat the nodes of the other cluster as lost.`,
		Example: "  liqo-autoscaler temporal adopt-hub --hub edge --kubeconfig consumer.kubeconfig",
		Args:    cobra.NoArgs,
	}
	serve.RegisterKubeconfig(cmd, &kubeconfig)
	return c.Complete(cmd, func(ctx context.Context, t client.Client, out io.Writer, _ []string) error {
		access, err := serve.Personal(kubeconfig)
		if err != nil {
			return err
		}
		kube, err := kubernetes.NewForConfig(access)
		if err != nil {
			return fmt.Errorf("open consumer cluster: %w", err)
		}
		uid, err := parts.ClusterUID(ctx, kube)
		if err != nil {
			return err
		}
		if err := flow.NewHub(t, c.Hub, c.TaskQueue).Adopt(ctx, uid); err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "hub %s belongs to the cluster with UID %s\n", c.Hub.Name(), uid)
		return err
	})
}
