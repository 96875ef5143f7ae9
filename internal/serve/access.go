package serve

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Consumer returns a client configuration for the consumer cluster. It comes from the kubeconfig or, if kubeconfig is
// "", from the Pod's ServiceAccount.
func Consumer(kubeconfig string) (*rest.Config, error) {
	return ClusterAccess("the consumer cluster", kubeconfig)
}

// ClusterAccess returns a client configuration for a cluster. It comes from the kubeconfig or, if kubeconfig is "",
// from the Pod's ServiceAccount. Errors contain the parameter cluster as the cluster's name.
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

// RegisterKubeconfig adds the flag --kubeconfig to a command that a user runs.
func RegisterKubeconfig(cmd *cobra.Command, path *string) {
	cmd.Flags().StringVar(path, "kubeconfig", "",
		"access to the consumer cluster (default: as kubectl, or in-cluster)")
}

// Personal returns a client configuration for the consumer cluster, with the permissions of the user that runs the
// command. kubectl would use the same configuration.
func Personal(kubeconfig string) (*rest.Config, error) {
	return AsKubectl(kubeconfig, "access to the consumer cluster (--kubeconfig, KUBECONFIG or ~/.kube/config)")
}

// AsKubectl returns the client configuration that kubectl would use. The parameter what describes its purpose; an
// error begins with this text.
func AsKubectl(kubeconfig, what string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	access, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return access, nil
}
