package serve

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Consumer returns the access to the consumer cluster: of the kubeconfig, or of the Pod's ServiceAccount if kubeconfig
// is "".
func Consumer(kubeconfig string) (*rest.Config, error) {
	return ClusterAccess("the consumer cluster", kubeconfig)
}

// ClusterAccess returns the access to a cluster: of the kubeconfig, or of the Pod's ServiceAccount if kubeconfig is "".
// cluster names the cluster in errors.
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

// RegisterKubeconfig adds the flag --kubeconfig of commands that a user runs.
func RegisterKubeconfig(cmd *cobra.Command, path *string) {
	cmd.Flags().StringVar(path, "kubeconfig", "",
		"access to the consumer cluster (default: as kubectl, or in-cluster)")
}

// Personal returns the access to the consumer cluster of the user that runs the command, as kubectl would.
func Personal(kubeconfig string) (*rest.Config, error) {
	return AsKubectl(kubeconfig, "access to the consumer cluster (--kubeconfig, KUBECONFIG or ~/.kube/config)")
}

// AsKubectl returns the access that kubectl would use. An error begins with the argument what, which names the
// purpose of the access.
func AsKubectl(kubeconfig, what string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	access, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return access, nil
}
