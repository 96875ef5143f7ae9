package serve

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Consumer is the access to the cluster that lacks room.
func Consumer(kubeconfig string) (*rest.Config, error) {
	return ClusterAccess("the consumer cluster", kubeconfig)
}

// ClusterAccess is by a kubeconfig, or by the Pod's own ServiceAccount.
func ClusterAccess(cluster, kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		access, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("no --kubeconfig, and not in a cluster: %w", err)
		}
		return access, nil
	}
	access, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig of %s: %w", cluster, err)
	}
	return access, nil
}

// RegisterKubeconfig adds the flag that names the access of the person who runs the command.
func RegisterKubeconfig(cmd *cobra.Command, path *string) {
	cmd.Flags().StringVar(path, "kubeconfig", "",
		"access to the consumer cluster (default: as kubectl has it, or in-cluster)")
}

// Personal is the access of the person who runs the command.
func Personal(kubeconfig string) (*rest.Config, error) {
	return AsKubectl(kubeconfig, "access to the consumer cluster (--kubeconfig, KUBECONFIG or ~/.kube/config)")
}

// AsKubectl is the access that kubectl would use. An error begins with what it is for.
func AsKubectl(kubeconfig, what string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	access, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return access, nil
}
